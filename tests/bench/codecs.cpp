#include <cmath>
#include <cstring>

#include "tern/dist/codec/codec.h"
#include "tern/kernels/codec.h"
#include "tern/kernels/elementwise.h"
#include "tests/bench/case.h"

namespace tern::bench {
namespace {

constexpr int64_t kNumel = 25'000'000;
constexpr RandomKey kKey{.seed = 1, .purpose = Purpose::codec};

Tensor gradient() {
  Tensor g = Tensor::empty({kNumel});
  const RandomStream stream({.seed = 1, .purpose = Purpose::test});
  const auto values = g.span<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1e-3f * stream.normal(i % 1000003);
  return g;
}

void add(std::vector<Case>& cases, const std::string& name, std::function<std::function<void()>()> prepare) {
  cases.push_back({name, 1, std::move(prepare), {kNumel * sizeof(float), "GB/s of float32"}});
}

kernels::CodedGradient coded(const Tensor& units, int bits) {
  return {gradient(), units, Tensor::zeros({kernels::code_bytes(kNumel, bits)}, {.dtype = DType::u8}), kKey};
}

/// Decodes one message with these units, and adds it to a sum.
std::function<void()> decode_add(const Tensor& units, int64_t bucket, int64_t levels) {
  const kernels::CodedGradient message = coded(units, kernels::code_bits(levels));
  kernels::quantize({&message, 1}, bucket, levels);
  return [=, codes = message.codes.reshape({1, -1}), sum = kernels::DecodedGradient{Tensor::zeros({kNumel})}] {
    kernels::dequantize_add({&sum, 1}, codes, units, bucket, levels);
  };
}

/// A codec's whole encoding of a matrix, and the decoding of its message into a sum.
void add_codec(std::vector<Case>& cases, const char* name, const char* spec) {
  const Shape shape = {5000, 5000};
  const GradientTag tag = {"weight", kKey};
  const std::string prefix = std::string("codec/") + name;
  add(cases, prefix + "_encode/25m", [=] {
    return [=, codec = std::shared_ptr(make_codec(spec)), g = gradient().reshape(shape)] {
      std::vector<std::byte> bytes;
      codec->encode(tag, g, bytes);
    };
  });
  add(cases, prefix + "_decode_add/25m", [=] {
    const auto codec = std::shared_ptr(make_codec(spec));
    std::vector<std::byte> bytes;
    codec->encode(tag, gradient().reshape(shape), bytes);
    return [=, sum = Tensor::zeros(shape)]() mutable { codec->decode_add(tag, bytes, sum); };
  });
}

}  // namespace

// The cases run on one thread. Every rate counts the bytes of the float32 array once. So the ratio of a rate to
// memcpy's is the ratio of their times.
void add_codecs(std::vector<Case>& cases) {
  add(cases, "codec/memcpy/25m", [] {
    return [from = gradient(), to = Tensor::zeros({kNumel})] {
      std::memcpy(to.data<float>(), from.data<float>(), from.bytes());
    };
  });
  // What encoding with statistics and what decoding into a sum must move: two reads, and a read and a write in place.
  add(cases, "codec/two_reads/25m", [] {
    return [g = kernels::MeasuredGradient{gradient(), Tensor::empty({1, 3}, {.dtype = DType::f64})}] {
      for (int read = 0; read < 2; ++read) kernels::gradient_statistics({&g, 1}, 0);
    };
  });
  add(cases, "codec/in_place/25m", [] { return [x = gradient()]() mutable { kernels::scale(x, 0.999, x); }; });
  add(cases, "codec/ternary_encode/25m", [] {
    const kernels::CodedGradient message = coded(Tensor::zeros({1}), 2);
    return [message, measured = kernels::MeasuredGradient{message.g, Tensor::empty({1, 3}, {.dtype = DType::f64})}] {
      kernels::gradient_statistics({&measured, 1}, 0);
      const auto* s = measured.statistics.data<double>();
      const double mean = s[1] / kNumel, deviation = std::sqrt(s[2] / kNumel - mean * mean);
      message.units.fill(std::min(s[0], 2.5 * deviation));
      kernels::quantize({&message, 1}, 0, 1);
    };
  });
  add(cases, "codec/ternary_decode_add/25m", [] { return decode_add(Tensor::full({1}, 2.5e-3), 0, 1); });
  constexpr int64_t kBucket = 512, kLevels = 7, kBuckets = kernels::bucket_count(kNumel, kBucket);
  add(cases, "codec/qsgd4_encode/25m", [] {
    return [message = coded(Tensor::zeros({kBuckets}), 4)] {
      kernels::norm_quantize({&message, 1}, kernels::BucketNorm::max, kBucket, kLevels);
    };
  });
  add(cases, "codec/qsgd4_decode_add/25m", [] { return decode_add(Tensor::full({kBuckets}, 3e-3), kBucket, kLevels); });
  add_codec(cases, "ternary_entropy", "ternary:pack=entropy");
  add_codec(cases, "qsgd4_entropy", "qsgd:bits=4,code=entropy");
  add_codec(cases, "hadamard2", "hadamard:bits=2");
  add_codec(cases, "topk_block", "topk-block");
}

}  // namespace tern::bench
