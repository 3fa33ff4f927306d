#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/dist/codec/codec_support.h"

namespace tern::test {
namespace {

/// n · H₀ of the codes of one tensor, in bytes.
double entropy_bytes(const Tensor& codes) {
  std::map<float, double> counts;
  for (const float code : codes.span<float>()) ++counts[code];
  double bits = 0;
  for (const auto& [code, count] : counts) bits -= count * std::log2(count / static_cast<double>(codes.numel()));
  return bits / 8;
}

/// Gradients with LeNet's shapes. Their scales differ as LeNet's do.
std::vector<Tensor> gradients() {
  const Shape shapes[] = {{20, 1, 5, 5}, {20}, {50, 20, 5, 5}, {50}, {500, 2450}, {500}, {10, 500}, {10}};
  std::vector<Tensor> all;
  for (size_t i = 0; i < std::size(shapes); ++i) {
    all.push_back(gaussian(shapes[i], i + 1));
    // Heavy tails: most elements are small compared with the scaler.
    for (float& x : all.back().span<float>()) x *= std::abs(x) * std::exp2(-static_cast<float>(i));
  }
  return all;
}

// Every tensor has its own table, even a small one. The bytes include the scaler if a tensor has one.
TEST(EntropyCodes, ComeWithinThreePercentOfTheirEntropy) {
  for (const char* spec : {"ternary:pack=entropy", "ternary:clip=0,pack=entropy",
                           "qsgd:bucket=0,levels=1024,code=entropy", "qsgd:bucket=0,bits=8,norm=max,code=entropy"}) {
    const auto codec = make_codec(spec);
    double sent = 0, entropy = 0;
    for (const Tensor& g : gradients()) {
      sent += static_cast<double>(encoded(*codec, g).size());
      const Tensor scalers = codec->scaled()->scalers(tag(), g);
      Tensor codes = Tensor::zeros(g.shape());
      std::vector<std::byte> bytes;
      codec->scaled()->append_codes(tag(), g, scalers, bytes);
      codec->scaled()->add_codes(bytes, Tensor::full({1}, 1), codes);
      entropy += entropy_bytes(codes);
    }
    EXPECT_GE(entropy, 16384) << spec;
    EXPECT_LE(sent, 1.03 * entropy) << spec;
    EXPECT_GE(sent, entropy) << spec << ": less than the entropy is another message";
  }
}

}  // namespace
}  // namespace tern::test
