#include "tern/kernels/hadamard.h"

#include <cstring>

#include "tern/kernels/hadamard_arithmetic.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

using namespace tern::kernels;

void hadamard_encode(const Tensor& g, const RandomKey& key, int bits, Tensor& codes) {
  check_hadamard_encode(g, bits, codes);
  if (g.numel() == 0) return;
  const uint64_t seed = drawn_seed(key);
  std::memcpy(codes.data<uint8_t>(), &seed, sizeof seed);
  float x[kHadamardBucket];
  for (int64_t b = 0; b < hadamard_buckets(g.numel()); ++b)
    hadamard_encode_bucket(g.data<float>(), {g.numel(), bits, b}, b, hadamard_stream(seed), bits, codes.data<uint8_t>(),
                           x);
}

void add_messages(const char* operation, const Tensor& messages, int64_t codes_at, int bits, Tensor& sum) {
  check_hadamard_decode(operation, messages, codes_at, bits, sum);
  if (sum.numel() == 0) return;
  float x[kHadamardBucket];
  for (int64_t message = 0; message < messages.size(0); ++message) {
    const uint8_t* const codes = messages.data<uint8_t>() + message * messages.size(1) + codes_at;
    uint64_t seed = 0;
    std::memcpy(&seed, codes, sizeof seed);
    for (int64_t b = 0; b < hadamard_buckets(sum.numel()); ++b)
      hadamard_add_bucket(codes, {sum.numel(), bits, b}, b, hadamard_stream(seed), bits, sum.data<float>(), x);
  }
}

void hadamard_decode_add(const Tensor& messages, int64_t codes_at, int bits, Tensor& sum) {
  add_messages("hadamard_decode_add", messages, codes_at, bits, sum);
}

void hadamard_mean(const Tensor& messages, int64_t codes_at, int bits, Tensor& mean) {
  mean.fill(0);
  add_messages("hadamard_mean", messages, codes_at, bits, mean);
  const float factor = hadamard_mean_factor(messages.size(0));
  for (float& value : mean.span<float>()) value *= factor;
}

}  // namespace

void provide_hadamard() {
  kernels::hadamard_encode.provide(Target::reference, hadamard_encode);
  kernels::hadamard_decode_add.provide(Target::reference, hadamard_decode_add);
  kernels::hadamard_mean.provide(Target::reference, hadamard_mean);
}

}  // namespace tern::reference
