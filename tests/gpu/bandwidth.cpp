#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tern/core/error.h"
#include "tern/dist/codec/codec.h"
#include "tern/kernels/codec.h"
#include "tern/kernels/dropout.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/loss.h"
#include "tern/kernels/normalization.h"
#include "tern/kernels/pooling.h"
#include "tern/kernels/reduction.h"
#include "tern/kernels/short_float.h"
#include "tern/kernels/update.h"
#include "tern/trainer/application.h"

// Compares the rate of kernels that move memory with a copy on the same device. The rate is the bytes that a kernel
// must read and write over its time. It is divided by the rate of a device-to-device copy. The rounds of a table's rows
// are interleaved. usage: bandwidth kernels|codecs

namespace tern {
namespace {

constexpr Device kCuda{DeviceType::cuda, 0};
constexpr int kRounds = 7, kMostRuns = 20;
constexpr double kRoundSeconds = 0.01;

struct Row {
  const char* name;
  double bytes;
  std::function<void()> run;
  int runs = kMostRuns;  ///< of a round
  std::vector<double> seconds = {};
};

/// The mean of `runs` runs, in seconds.
double time_of(const std::function<void()>& run, int runs) {
  DeviceBackend& backend = device_backend(kCuda);
  backend.synchronize();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < runs; ++i) run();
  backend.synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / runs;
}

/// Values that differ, because zeros can move faster.
Tensor noise(const Shape& shape, DType dtype = DType::f32) {
  const RandomStream random({.seed = 7, .purpose = Purpose::test});
  Tensor values = Tensor::empty({1 << 16});
  for (size_t i = 0; i < values.span<float>().size(); ++i) values.span<float>()[i] = random.uniform(i) - 0.5f;
  const MemoryFormat format = shape.rank() == 4 ? MemoryFormat::channels_last : MemoryFormat::row_major;
  Tensor there = Tensor::empty(shape, {dtype, kCuda, format});
  const Tensor some = values.to(dtype).to(kCuda);
  DeviceBackend& backend = device_backend(kCuda);
  for (size_t at = 0; at < there.bytes(); at += some.bytes())
    backend.copy(static_cast<std::byte*>(there.raw_data()) + at, kCuda, some.raw_data(), kCuda,
                 std::min(some.bytes(), there.bytes() - at));
  return there;
}

constexpr int64_t kNumel = 100'000'000, kMessages = 8;

/// The codes and units of a tensor in one message.
struct Codes {
  Codes(const Tensor& g, int64_t bucket, int64_t levels)
      : units(Tensor::full({kernels::bucket_count(g.numel(), bucket)}, 0.5 / static_cast<double>(levels), g.options())),
        codes(Tensor::empty({kernels::code_bytes(g.numel(), kernels::code_bits(levels))},
                            {.dtype = DType::u8, .device = g.device()})),
        message{{g, units, codes, {.seed = 1, .purpose = Purpose::codec}}},
        bytes(static_cast<double>(units.bytes() + codes.bytes())) {}

  Tensor units, codes;
  std::vector<kernels::CodedGradient> message;
  double bytes;
};

/// kMessages copies of one message: [kMessages, bytes].
Tensor messages_of(const Tensor& one) {
  const Tensor all = Tensor::empty({kMessages, one.numel()}, one.options());
  for (int64_t i = 0; i < kMessages; ++i) all.slice(i, i + 1).copy_from(one.reshape({1, one.numel()}));
  return all;
}

void add_encoder_rows(const Tensor& g, const Tensor& /*sum*/, std::vector<Row>& rows) {
  using namespace kernels;
  const auto size = static_cast<double>(g.bytes());
  for (const auto& [name, bucket] : {std::pair{"gradient_statistics", 0}, {"gradient_statistics, 512", 512}}) {
    const Tensor statistics = Tensor::empty({bucket_count(kNumel, bucket), 3}, {.dtype = DType::f64, .device = kCuda});
    const std::vector<MeasuredGradient> message = {{g, statistics}};
    rows.push_back(
        {name, size + static_cast<double>(statistics.bytes()), [=, b = bucket] { gradient_statistics(message, b); }});
  }
  const Codes ternary(g, 0, 1), whole(g, 0, 7), buckets(g, 512, 7);
  rows.push_back({"quantize, ternary", size + ternary.bytes, [=] { quantize(ternary.message, 0, 1); }});
  rows.push_back({"quantize, 4 bits, 512", size + buckets.bytes, [=] { quantize(buckets.message, 512, 7); }});
  for (const auto& [name, norm] : {std::pair{"norm_quantize, 4 bits, 512, max", BucketNorm::max},
                                   {"norm_quantize, 4 bits, 512, l2", BucketNorm::l2}})
    rows.push_back({name, size + buckets.bytes, [=, n = norm] { norm_quantize(buckets.message, n, 512, 7); }});
  rows.push_back({"norm_quantize, 4 bits, all, max", 2 * size + whole.bytes,
                  [=] { norm_quantize(whole.message, BucketNorm::max, 0, 7); }});
}

void add_short_float_rows(const Tensor& g, const Tensor& sum, std::vector<Row>& rows) {
  using namespace kernels;
  const auto size = static_cast<double>(g.bytes());
  for (const auto& [encode, decode, format] : {std::tuple{"shorten, fp16", "widen_add of 8, fp16", ShortFloat::half},
                                               {"shorten, bf16", "widen_add of 8, bf16", ShortFloat::brain}}) {
    Tensor codes = Tensor::empty({2 * kNumel}, {.dtype = DType::u8, .device = kCuda});
    shorten(g, format, codes);
    rows.push_back({encode, 1.5 * size, [=, f = format, o = codes]() mutable { shorten(g, f, o); }});
    const Tensor all = messages_of(codes);
    rows.push_back({decode, 2 * size + static_cast<double>(all.bytes()),
                    [=, f = format, o = sum]() mutable { widen_add(all, 0, f, o); }});
  }
}

/// Rows of whole messages. For a scaler of the whole tensor, the codec must read the gradient twice. Sparse codes move
/// only the elements of the sum that they hold.
void add_message_rows(const Tensor& g, const Tensor& sum, std::vector<Row>& rows) {
  const FusedGradients message = {{{"g", {.seed = 1, .purpose = Purpose::codec}}, g}};
  const auto size = static_cast<double>(g.bytes());
  for (const auto& [encode, decode, spec, reads, moved] :
       {std::tuple{"ternary encode", "dequantize_add of 8, ternary", "ternary", 2, 1.0},
        {"qsgd encode, 4 bits, 512", "dequantize_add of 8, 4 bits", "qsgd:bits=4,bucket=512", 1, 1.0},
        {"ternary encode, 5 trits", "decode_add of 8, 5 trits", "ternary:pack=5trit", 2, 1.0},
        {"onebit encode", "decode_add of 8, onebit", "onebit", 1, 1.0},
        {"hadamard encode, 2 bits", "hadamard_decode_add of 8, 2 bits", "hadamard:bits=2", 1, 1.0},
        {"topk-block encode", "topk_block_decode_add of 8", "topk-block", 1, kMessages * 64 / 4096.0},
        {"topk encode, 1 %", "topk_decode_add of 8, 1 %", "topk:ratio=0.01", 1, kMessages * 0.01},
        {"randk encode, 1 %", "randk_decode_add of 8, 1 %", "randk:ratio=0.01", 1, kMessages * 0.01}}) {
    const std::shared_ptr<GradientCodec> codec = make_codec(spec);
    const Tensor one = codec->messages()->encode(message, {});
    const auto bytes = static_cast<double>(one.bytes());
    rows.push_back({encode, reads * size + bytes, [=] { codec->messages()->encode(message, {}); }});
    const Tensor all = messages_of(one);
    rows.push_back({decode, 2 * moved * size + kMessages * bytes,
                    [=] { codec->messages()->decode_add(all, {}, std::vector<Tensor>{sum}); }});
  }
}

/// Rows of codecs of varying size. Their symbols follow the codes of the fixed size.
void add_parts_rows(const Tensor& g, const Tensor& sum, std::vector<Row>& rows) {
  const FusedGradients message = {{{"g", {.seed = 1, .purpose = Purpose::codec}}, g}};
  const auto size = static_cast<double>(g.bytes());
  for (const auto& [encode, decode, spec, reads] :
       {std::tuple{"ternary encode, entropy", "decode of 8, ternary, entropy", "ternary:pack=entropy", 2},
        {"qsgd encode, 4 bits, 512, entropy", "decode of 8, 4 bits, entropy", "qsgd:bits=4,bucket=512,code=entropy", 1},
        {"qsgd encode, 4 bits, 512, Elias", "decode of 8, 4 bits, Elias", "qsgd:bits=4,bucket=512,code=elias", 1}}) {
    const std::shared_ptr<GradientCodec> codec = make_codec(spec);
    const CodedMessage one = codec->parts()->encode_parts(message, {});
    const auto bytes = static_cast<double>(one.bytes.bytes());
    rows.push_back({encode, reads * size + bytes, [=] { codec->parts()->encode_parts(message, {}); }});
    const Tensor all = messages_of(one.bytes).reshape({kMessages * one.bytes.numel()});
    const std::vector<int64_t> lengths(kMessages, one.bytes.numel());
    rows.push_back({decode, 2 * size + kMessages * bytes,
                    [=] { codec->parts()->decode_add_parts(all, lengths, {}, std::vector<Tensor>{sum}); }});
  }
}

using AddRows = void (*)(const Tensor& g, const Tensor& sum, std::vector<Row>& rows);

std::vector<Row> codec_rows(AddRows add) {
  const Tensor g = noise({kNumel}), sum = Tensor::zeros({kNumel}, {.device = kCuda});
  std::vector<Row> rows = {{"copy", 2 * static_cast<double>(g.bytes()), [=, o = sum]() mutable { o.copy_from(g); }}};
  add(g, sum, rows);
  return rows;
}

std::vector<Row> kernel_rows(DType dtype) {
  using namespace kernels;
  const Shape images{256, 64, 56, 56};  // 196 MiB in f32
  const Tensor x = noise(images, dtype), dy = noise(images, dtype), y = noise(images, dtype);
  const auto bytes = static_cast<double>(x.bytes());
  const Shape channels{64};
  const auto each = [&](double value) { return Tensor::full(channels, value, {.device = kCuda}); };
  const BatchNormParameters norm{each(1), each(0), each(0), each(1)};
  const Tensor passed = Tensor::zeros({passed_bytes(x.numel())}, {.dtype = DType::u8, .device = kCuda});
  const auto bits = static_cast<double>(passed.bytes());
  const Tensor mean = each(0), deviation = each(1), bias = noise({1, 64, 1, 1}, dtype);
  const PoolGeometry pool{.window = 2, .stride = 2};
  const Tensor pooled = noise({256, 64, 28, 28}, dtype),
               where = Tensor::zeros(pooled.shape(), {DType::u8, kCuda, MemoryFormat::channels_last});
  const Tensor plain = Tensor::empty(images, {dtype, kCuda}), sums = Tensor::empty({1, 64, 1, 1}, {dtype, kCuda});
  const Tensor samples = Tensor::zeros({256}, {DType::i64, kCuda});
  const Tensor logits = noise({65536, 1000}, dtype), probabilities = Tensor::empty_like(logits);
  const auto share = static_cast<double>(pooled.bytes()), marks = static_cast<double>(where.bytes());
  std::vector<Row> rows{
      {"copy", 2 * bytes, [=] { y.copy_from(x); }},
      {"relu", 2 * bytes, [=, o = y]() mutable { relu(x, o); }},
      {"relu_backward", 3 * bytes, [=, o = y]() mutable { relu_backward(x, dy, o); }},
      {"add", 3 * bytes, [=, o = y]() mutable { add(x, dy, o); }},
      {"add bias", 2 * bytes, [=, o = y]() mutable { add(x, bias, o); }},
      {"sum to channels", bytes, [=, o = sums]() mutable { sum(x, 1, o); }},
      {"batch_norm_training", 3 * bytes + bits,
       [=, o = y, b = passed, m = mean, d = deviation]() mutable {
         batch_norm_training(x, {}, norm, {.relu = true}, o, b, m, d);
       }},
      {"batch_norm_backward", 5 * bytes + 2 * bits,
       [=, o = y, a = each(0), b = each(0)]() mutable {
         Tensor none;
         batch_norm_backward(dy, {x, {}, passed, norm.gamma, mean, deviation}, true, o, a, b, none);
       }},
      {"local_response_norm", 3 * bytes, [=, o = y, d = dy.clone()]() mutable { local_response_norm(x, {}, o, d); }},
      {"local_response_norm_backward", 4 * bytes,
       [=, o = y]() mutable { local_response_norm_backward(dy, x, x, {}, o); }},
      {"max_pool2d", bytes + share + marks, [=, o = pooled, w = where]() mutable { max_pool2d(x, pool, o, w); }},
      {"max_pool2d_backward", bytes + share + marks,
       [=, o = y]() mutable { max_pool2d_backward(pooled, where, pool, o); }},
      {"average_pool2d", bytes + share, [=, o = pooled]() mutable { average_pool2d(x, pool, o); }},
      {"dropout", 2 * bytes, [=, o = y]() mutable { dropout(x, samples, {.seed = 1}, o); }},
      {"convert to row_major", 2 * bytes, [=, o = plain]() mutable { convert(x, o); }},
      {"softmax of 1000", 2 * static_cast<double>(logits.bytes()),
       [=, o = probabilities]() mutable { softmax(logits, o); }},
  };
  if (dtype == DType::f32) {
    const Tensor w = noise({50'000'000}), g = noise({50'000'000}), v = noise({50'000'000}), s = noise({50'000'000});
    const auto size = static_cast<double>(w.bytes());
    const std::vector<ParameterUpdate> all{{w, g, v, s, Tensor::zeros({}, {.dtype = DType::i64, .device = kCuda})}};
    const Tensor lr = Tensor::full({}, 1e-6, {.dtype = DType::f64, .device = kCuda});
    rows.push_back({"sgd_update with momentum", 5 * size, [=] { sgd_update(all, {.lr = lr, .momentum = 0.9}); }});
    rows.push_back({"adam_update", 7 * size, [=] { adam_update(all, {.lr = lr}); }});
  }
  return rows;
}

/// Prints each row's median time and rate. The first row is the copy. If a row fails, prints why, and returns false.
bool print_table(const std::string& title, const std::function<std::vector<Row>()>& make_rows) try {
  std::vector<Row> rows = make_rows();
  for (Row& row : rows) {
    row.run();  // the first run is slower
    row.runs = std::clamp(static_cast<int>(kRoundSeconds / time_of(row.run, 1)), 1, kMostRuns);
  }
  for (int round = 0; round < kRounds; ++round)
    for (Row& row : rows) row.seconds.push_back(time_of(row.run, row.runs));
  fmt::print("{:<32} {:>10} {:>10} {:>8}\n", title, "ms", "GB/s", "of copy");
  double copy = 0;
  for (Row& row : rows) {
    std::ranges::sort(row.seconds);
    const double median = row.seconds[kRounds / 2], rate = row.bytes / median;
    if (copy == 0) copy = rate;
    fmt::print("{:<32} {:>10.3f} {:>10.1f} {:>8.2f}\n", row.name, 1e3 * median, 1e-9 * rate, rate / copy);
  }
  return true;
} catch (const Error& error) {
  fmt::print("# {}: failed: {}\n", title, error.what());
  return false;
}

bool print_codecs() {
  bool ran = true;
  const std::pair<const char*, AddRows> tables[] = {{"encoders, 100 million f32", add_encoder_rows},
                                                    {"messages, 100 million f32", add_message_rows},
                                                    {"short floats, 100 million f32", add_short_float_rows},
                                                    {"varying sizes, 100 million f32", add_parts_rows}};
  for (const auto& [title, add] : tables) ran = print_table(title, [add = add] { return codec_rows(add); }) && ran;
  return ran;
}

bool print_kernels() {
  bool ran = true;
  for (const DType dtype : {DType::f32, DType::bf16})
    ran = print_table(to_string(dtype), [dtype] { return kernel_rows(dtype); }) && ran;
  return ran;
}

}  // namespace
}  // namespace tern

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // prints each row at once, into a pipe too
  return tern::run_application("bandwidth", [&] {
    const std::string which = argc == 2 ? argv[1] : "";
    tern::check_input(which == "kernels" || which == "codecs", "found '", which, "', expected kernels or codecs");
    fmt::print("# {}\n", tern::device_backend(tern::kCuda).name());
    return (which == "codecs" ? tern::print_codecs() : tern::print_kernels()) ? 0 : 1;
  });
}
