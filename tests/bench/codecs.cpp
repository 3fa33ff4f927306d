#include <cmath>
#include <cstring>

#include "tern/kernels/codec.h"
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

void add(std::vector<Case>& cases, const char* name, std::function<std::function<void()>()> prepare) {
  cases.push_back({name, 1, std::move(prepare), {kNumel * sizeof(float), "GB/s of float32"}});
}

}  // namespace

// One thread; every rate counts the bytes of the float32 array once, so that ratios to memcpy are those of the times.
void add_codecs(std::vector<Case>& cases) {
  add(cases, "codec/memcpy/25m", [] {
    return [from = gradient(), to = Tensor::zeros({kNumel})] {
      std::memcpy(to.data<float>(), from.data<float>(), from.bytes());
    };
  });
  add(cases, "codec/ternary_encode/25m", [] {
    return [g = gradient(), statistics = Tensor::empty({1, 3}, {.dtype = DType::f64}),
            codes = Tensor::zeros({kernels::code_bytes(kNumel, 2)}, {.dtype = DType::u8})]() mutable {
      kernels::gradient_statistics(g, 0, statistics);
      const auto* s = statistics.data<double>();
      const double mean = s[1] / kNumel, deviation = std::sqrt(s[2] / kNumel - mean * mean);
      kernels::quantize(g, Tensor::full({1}, std::min(s[0], 2.5 * deviation)), 0, 1, kKey, codes);
    };
  });
  add(cases, "codec/ternary_decode_add/25m", [] {
    const Tensor units = Tensor::full({1}, 2.5e-3);
    Tensor codes = Tensor::empty({kernels::code_bytes(kNumel, 2)}, {.dtype = DType::u8});
    kernels::quantize(gradient(), units, 0, 1, kKey, codes);
    return
        [units, codes, sum = Tensor::zeros({kNumel})]() mutable { kernels::dequantize_add(codes, units, 0, 1, sum); };
  });
  constexpr int64_t kBucket = 512, kLevels = 7, kBuckets = kernels::bucket_count(kNumel, kBucket);
  add(cases, "codec/qsgd4_encode/25m", [] {
    return [g = gradient(), units = Tensor::zeros({kBuckets}),
            codes = Tensor::zeros({kernels::code_bytes(kNumel, 4)}, {.dtype = DType::u8})]() mutable {
      kernels::norm_quantize(g, kernels::BucketNorm::l2, kBucket, kLevels, kKey, units, codes);
    };
  });
  add(cases, "codec/qsgd4_decode_add/25m", [] {
    const Tensor units = Tensor::full({kBuckets}, 3e-3);
    Tensor codes = Tensor::empty({kernels::code_bytes(kNumel, 4)}, {.dtype = DType::u8});
    kernels::quantize(gradient(), units, kBucket, kLevels, kKey, codes);
    return [units, codes, sum = Tensor::zeros({kNumel})]() mutable {
      kernels::dequantize_add(codes, units, kBucket, kLevels, sum);
    };
  });
}

}  // namespace tern::bench
