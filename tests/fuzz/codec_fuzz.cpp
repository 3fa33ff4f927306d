#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "tern/core/error.h"
#include "tern/dist/codec/codec.h"

// Reads any bytes as a message of any codec. The codec decodes them or throws an Error. The first byte chooses the
// codec, and the second the number of elements. If the third is odd, the rest changes the bytes of a good message. So
// the fuzzer also reaches the code behind the checks of sizes and sums.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<std::string> specs = [] {
    std::vector<std::string> all = tern::codec_names();
    for (const char* variant :
         {"ternary:pack=5trit,bucket=100", "ternary:pack=entropy", "qsgd:bits=2,bucket=64,norm=max,code=elias",
          "qsgd:levels=1,code=elias", "qsgd:code=entropy", "hadamard:bits=1", "hadamard:bits=4",
          "topk-block:keep=3,side=4,short=full,bits=32", "error-feedback:ternary"})
      all.emplace_back(variant);
    return all;
  }();
  if (size < 3) return 0;
  const auto codec = tern::make_codec(specs[data[0] % specs.size()]);
  const tern::GradientTag tag = {"w", {.purpose = tern::Purpose::codec}};
  constexpr int64_t kLong = 70'001;  // entropy codes have blocks of streams then
  tern::Tensor x = tern::Tensor::zeros({1, data[1] == 255 ? kLong : data[1] * 5 + 1});
  const bool over_good = data[2] % 2 == 1;
  data += 3;
  size -= 3;
  std::vector<std::byte> bytes;
  if (over_good) {
    for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(i % 17 - 8);
    codec->encode(tag, x, bytes);
    for (size_t i = 0; i < std::min(size, bytes.size()); ++i) bytes[i] ^= static_cast<std::byte>(data[i]);
  } else {
    std::transform(data, data + size, std::back_inserter(bytes), [](uint8_t byte) { return std::byte{byte}; });
  }
  // The copy has the exact size of the message, so that a read past its end is found.
  const std::unique_ptr<std::byte[]> message(new std::byte[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), message.get());
  try {
    codec->decode_add(tag, {message.get(), bytes.size()}, x);
  } catch (const tern::Error&) {
  }
  return 0;
}
