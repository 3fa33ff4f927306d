#include "tern/kernels/codec.h"

namespace tern::kernels {
namespace {

void check_bucketed(const char* operation, const Tensor& g, int64_t bucket) {
  check(g.dtype() == DType::f32 && g.format() == MemoryFormat::row_major, operation, ": gradient is ", g.dtype(), ", ",
        g.format(), ", expected f32, row_major");
  check(bucket >= 0, operation, ": bucket is ", bucket, ", expected 0 or more");
  check(g.numel() < int64_t{1} << 33, operation, ": gradient has ", g.numel(), " elements, expected below 2^33");
}

}  // namespace

void check_quantize(const char* operation, const Tensor& g, const Tensor& units, int64_t bucket, int64_t levels,
                    const Tensor& codes) {
  check_bucketed(operation, g, bucket);
  check(levels >= 1 && levels <= kMostLevels, operation, ": levels is ", levels, ", expected 1 to ", kMostLevels);
  const Shape buckets{bucket_count(g.numel(), bucket)};
  check(units.dtype() == DType::f32 && units.shape() == buckets, operation, ": units are ", units.dtype(), " ",
        units.shape(), ", expected f32 ", buckets);
  const Shape bytes{code_bytes(g.numel(), code_bits(levels))};
  check(codes.dtype() == DType::u8 && codes.shape() == bytes, operation, ": codes are ", codes.dtype(), " ",
        codes.shape(), ", expected u8 ", bytes);
}

void check_gradient_statistics(const Tensor& g, int64_t bucket, const Tensor& statistics) {
  check_bucketed("gradient_statistics", g, bucket);
  const Shape expected{bucket_count(g.numel(), bucket), 3};
  check(statistics.dtype() == DType::f64 && statistics.shape() == expected, "gradient_statistics: statistics are ",
        statistics.dtype(), " ", statistics.shape(), ", expected f64 ", expected);
}

}  // namespace tern::kernels
