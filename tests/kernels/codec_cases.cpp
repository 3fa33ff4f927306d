#include "tern/kernels/codec.h"
#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

using namespace tern::kernels;

struct CodecCase {
  const char* name;
  int64_t n, bucket, levels;
};
const CodecCase kCases[] = {
    {"empty", 0, 0, 1},           {"one", 1, 0, 1},
    {"short group", 37, 0, 7},    {"one chunk", 256, 0, 3},
    {"runs", 70001, 0, 1},        {"buckets", 3000, 512, 7},
    {"odd buckets", 999, 7, 5},   {"wide levels", 1000, 300, 32767},
    {"bucket of one", 300, 1, 1},
};
const RandomKey kKey{.seed = 5, .purpose = Purpose::codec, .owner = 3, .step = 2, .tensor = 9};

Tensor units(Run& run, const CodecCase& c) {
  return run
      .parameter({bucket_count(c.n, c.bucket)}, 0.5 / static_cast<double>(c.levels),
                 1.5 / static_cast<double>(c.levels))
      .to(DType::f32);
}

}  // namespace

// f32 alone; the oracle in double precision gets the same floats, and codes must equal its own.
void add_codec_cases(ParityTable& table) {
  const ParityOptions f32{.bf16 = false, .channels_last = false};
  for (const CodecCase& c : kCases) {
    table.push_back({&gradient_statistics, c.name,
                     [c](Run& run) {
                       run(gradient_statistics, run.input({c.n}).to(DType::f32), c.bucket,
                           run.output_as(DType::f64, {bucket_count(c.n, c.bucket), 3}));
                     },
                     f32});
    table.push_back({&quantize, c.name,
                     [c](Run& run) {
                       run(quantize, run.input({c.n}).to(DType::f32), units(run, c), c.bucket, c.levels, kKey,
                           run.output_as(DType::u8, {code_bytes(c.n, code_bits(c.levels))}));
                     },
                     f32});
    for (const BucketNorm norm : {BucketNorm::l2, BucketNorm::max})
      table.push_back({&norm_quantize, c.name,
                       [c, norm](Run& run) {
                         run(norm_quantize, run.input({c.n}).to(DType::f32), norm, c.bucket, c.levels, kKey,
                             run.output_as(DType::f32, {bucket_count(c.n, c.bucket)}),
                             run.output_as(DType::u8, {code_bytes(c.n, code_bits(c.levels))}));
                       },
                       f32});
    table.push_back({&dequantize_add, c.name,
                     [c](Run& run) {
                       const Tensor codes = run.integers({code_bytes(c.n, code_bits(c.levels))}, 256).to(DType::u8);
                       run(dequantize_add, codes, units(run, c), c.bucket, c.levels,
                           run.changed(run.input({c.n}).to(DType::f32)));
                     },
                     f32});
  }
}

}  // namespace tern::test
