#include "tern/dist/exchange/coded.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tern/kernels/codec.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/layout.h"

namespace tern {
namespace {

/// The codec of messages in parts, if the gradients are not on the CPU.
PartsCodec* parts_of(GradientCodec& codec, const FusedGradients& message) {
  return message.front().gradient.device().type == DeviceType::cpu ? nullptr : codec.parts();
}

/// make(buckets, device) and its views: the numbers of each tensor's buckets.
template <class Make>
FlatTensors in_buckets(GradientCodec& codec, const FusedGradients& message, Make make) {
  std::vector<int64_t> ends;
  for (int64_t end = 0; const auto& [tag, gradient] : message)
    ends.push_back(end += kernels::bucket_count(gradient.numel(), codec.scaled()->bucket()));
  FlatTensors numbers = {make(ends.back(), message.front().gradient.device()), {}};
  for (int64_t begin = 0; const int64_t end : ends)
    numbers.parts.push_back(numbers.whole.slice(std::exchange(begin, end), end));
  return numbers;
}

/// This rank's own scalers: of all tensors at once, or one by one.
FlatTensors own_scalers(GradientCodec& codec, const FusedGradients& message) {
  PartsCodec* const parts = parts_of(codec, message);
  if (codec.messages() != nullptr || parts != nullptr)
    return in_buckets(codec, message, [&](int64_t, Device) {
      return parts != nullptr ? parts->scalers(message) : codec.messages()->scalers(message);
    });
  FlatTensors scalers = in_buckets(codec, message, [](int64_t count, Device) { return Tensor::empty({count}); });
  for (size_t i = 0; i < message.size(); ++i)
    scalers.parts[i].copy_from(codec.scaled()->scalers(message[i].tag, message[i].gradient));
  return scalers;
}

/// f32 [count]
Tensor ones(int64_t count, Device device) {
  Tensor numbers = Tensor::empty({count}, {.device = device});
  kernels::fill(numbers, 1);
  return numbers;
}
/// The unit of whole numbers that are one bucket: f32 [1], and [0] if x is empty.
Tensor unit_for(const Tensor& x) { return ones(kernels::bucket_count(x.numel(), 0), x.device()); }

/// Multiplies each bucket of x by its number in `factors`, f32 [buckets] on the device of x.
void multiply_buckets(const Tensor& factors, int64_t bucket, const Tensor& x) {
  const int64_t n = x.numel(), width = bucket == 0 ? n : bucket, whole = width == 0 ? 0 : n / width;
  const Tensor flat = x.reshape({n});
  const auto multiply = [&](int64_t begin, int64_t end, int64_t columns) {
    if (begin == end) return;
    Tensor rows = flat.slice(begin, end).reshape({(end - begin) / columns, columns});
    const int64_t first = begin / width;
    kernels::multiply(rows, factors.slice(first, first + rows.size(0)).reshape({rows.size(0), 1}), rows);
  };
  multiply(0, whole * width, width);
  multiply(whole * width, n, n - whole * width);
}

/// sums += the messages in `bytes`, whose tensors have these lengths.
void decode_parts(GradientCodec& codec, const FusedGradients& message, const FlatTensors& scalers, const Tensor& bytes,
                  std::span<const int64_t> lengths, FlatTensors& sums) {
  decoded(codec, message, [&] { codec.parts()->decode_add_parts(bytes, lengths, scalers.whole, sums.parts); });
}

/// sums += the rows of `messages`.
void decode_messages(GradientCodec& codec, const FusedGradients& message, const FlatTensors& scalers,
                     const Tensor& messages, FlatTensors& sums) {
  decoded(codec, message, [&] { codec.messages()->decode_add(messages, scalers.whole, sums.parts); });
}

}  // namespace

FlatTensors shared_scalers(GradientCodec& codec, const FusedGradients& message, Communicator& communicator,
                           ExchangeTimes& times) {
  FlatTensors scalers = [&] {
    const Stopwatch encoding(times.encode);
    return own_scalers(codec, message);
  }();
  const Stopwatch waiting(times.wait);
  communicator.all_reduce(scalers.whole, Reduction::max).wait();
  return scalers;
}

ExchangePhase plan_scalers(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks) {
  int64_t scalers = 0;
  for (const CodedTensor& tensor : message)
    scalers += kernels::bucket_count(tensor.shape.numel(), codec.scaled()->bucket());
  return {.wire = all_reduce_load(4 * scalers, ranks)};
}

Tensor tensor_of(std::span<const std::byte> bytes) {
  return Tensor::from<uint8_t>({static_cast<int64_t>(bytes.size())},
                               {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

CodedMessage encode_all(GradientCodec& codec, const FusedGradients& message, const FlatTensors& scalers) {
  if (codec.messages() != nullptr) {
    const Tensor bytes = codec.messages()->encode(message, scalers.whole);
    return {bytes, {bytes.numel()}};
  }
  if (PartsCodec* const parts = parts_of(codec, message)) return parts->encode_parts(message, scalers.whole);
  std::vector<std::byte> bytes;
  CodedMessage coded;
  for (size_t i = 0; i < message.size(); ++i) {
    const auto& [tag, gradient] = message[i];
    const size_t begin = bytes.size();
    if (scalers.parts.empty())
      codec.encode(tag, gradient, bytes);
    else if (gradient.numel() != 0)
      codec.scaled()->append_codes(tag, gradient, scalers.parts[i], bytes);
    coded.lengths.push_back(static_cast<int64_t>(bytes.size() - begin));
  }
  coded.bytes = tensor_of(bytes);
  return coded;
}

void decode_add_all(GradientCodec& codec, const FusedGradients& message, const FlatTensors& scalers,
                    const CodedMessage& coded, FlatTensors& sums) {
  if (codec.messages() != nullptr)
    return decode_messages(codec, message, scalers, coded.bytes.reshape({1, coded.bytes.numel()}), sums);
  if (parts_of(codec, message) != nullptr)
    return decode_parts(codec, message, scalers, coded.bytes, coded.lengths, sums);
  ByteReader reader(std::as_bytes(coded.bytes.span<uint8_t>()));
  for (size_t i = 0; i < message.size(); ++i) {
    const auto bytes = reader.take(static_cast<size_t>(coded.lengths[i]));
    if (scalers.parts.empty())
      codec.decode_add(message[i].tag, bytes, sums.parts[i]);
    else if (sums.parts[i].numel() != 0)
      codec.scaled()->add_codes(bytes, scalers.parts[i], sums.parts[i]);
  }
}

std::vector<CodedMessage> CodedExchange::Encoded::split(const Tensor& all) const {
  std::vector<CodedMessage> parts;
  int64_t begin = 0;
  for (size_t rank = 0; rank < counts.size(); begin += counts[rank++])
    parts.push_back({all.slice(begin, begin + counts[rank]), lengths[rank]});
  return parts;
}

std::vector<Tensor> CodedExchange::means_by_codec(const FusedGradients& message, const Encoded& encoded,
                                                  const Tensor& all, kernels::MeanOver over) const {
  if (codec_.messages() == nullptr) return {};
  const Tensor rows = all.reshape({communicator_.size(), encoded.counts.front()});
  return decoded(codec_, message, [&] { return codec_.messages()->means(rows, over, message); });
}

void CodedExchange::decode_add_everyones(const FusedGradients& message, const Encoded& encoded, const Tensor& all,
                                         FlatTensors& sums) const {
  if (codec_.messages() != nullptr)
    return decode_messages(codec_, message, encoded.scalers,
                           all.reshape({communicator_.size(), encoded.counts.front()}), sums);
  if (parts_of(codec_, message) != nullptr) {
    std::vector<int64_t> lengths;
    for (const auto& of_rank : encoded.lengths) lengths.insert(lengths.end(), of_rank.begin(), of_rank.end());
    return decode_parts(codec_, message, encoded.scalers, all, lengths, sums);
  }
  for (const CodedMessage& coded : encoded.split(all)) decode_add_all(codec_, message, encoded.scalers, coded, sums);
}

CodedExchange::Encoded CodedExchange::encode(const FusedGradients& message, bool share_scalers) {
  FlatTensors scalers;
  if (share_scalers) scalers = shared_scalers(codec_, message, communicator_, times_);
  const CodedMessage coded = [&] {
    const Stopwatch encoding(times_.encode);
    return encode_all(codec_, message, scalers);
  }();
  return counted(coded, std::move(scalers));
}

CodedExchange::Encoded CodedExchange::encode_difference(const FusedGradients& message, std::span<const Tensor> minus) {
  const Tensor bytes = [&] {
    const Stopwatch encoding(times_.encode);
    return codec_.messages()->encode_difference(message, minus);
  }();
  return counted({bytes, {bytes.numel()}}, {});
}

CodedExchange::Encoded CodedExchange::counted(const CodedMessage& coded, FlatTensors scalers) {
  Encoded encoded = {std::move(scalers), coded.bytes, lengths_of_all(coded.lengths), {}};
  for (const auto& of_rank : encoded.lengths)
    encoded.counts.push_back(std::accumulate(of_rank.begin(), of_rank.end(), int64_t{0}));
  encoded.total = std::accumulate(encoded.counts.begin(), encoded.counts.end(), int64_t{0});
  return encoded;
}

std::vector<std::vector<int64_t>> CodedExchange::lengths_of_all(const std::vector<int64_t>& lengths) {
  std::vector<std::vector<int64_t>> all(static_cast<size_t>(communicator_.size()), lengths);
  if (codec_.traits().fixed_size) return all;
  const auto tensors = static_cast<int64_t>(lengths.size());
  const Tensor mine = Tensor::from<int64_t>({tensors}, lengths);
  Tensor everyones = Tensor::empty({communicator_.size(), tensors}, {.dtype = DType::i64});
  wait(communicator_.all_gather(mine, everyones, Account::overhead));
  for (int64_t rank = 0; rank < communicator_.size(); ++rank)
    all[static_cast<size_t>(rank)] = everyones.slice(rank, rank + 1).to_vector<int64_t>();
  return all;
}

CodedPlan plan_coded(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks, bool share_scalers) {
  CodedPlan coded = {.elements = static_cast<double>(elements_of(message))};
  auto& phases = coded.plan.phases;
  int64_t bytes = 0;
  for (const CodedTensor& tensor : message) {
    bytes += tensor.bytes;
    if (share_scalers) bytes -= 4 * kernels::bucket_count(tensor.shape.numel(), codec.scaled()->bucket());
  }
  coded.counts.assign(static_cast<size_t>(ranks), bytes);
  if (share_scalers) phases.push_back(plan_scalers(codec, message, ranks));
  double left = coded.elements;
  if (!codec.traits().fixed_size) {
    const std::vector<int64_t> lengths(static_cast<size_t>(ranks), 8 * std::ssize(message));
    phases.push_back({.encoded = std::exchange(left, 0), .wire = all_gather_load(lengths), .payload = false});
  }
  coded.plan.under_way = phases.size();
  phases.push_back({.encoded = left});
  return coded;
}

bool sums_integers(const GradientCodec& codec) {
  return codec.scaled() != nullptr && codec.scaled()->sharing() != ScalerSharing::off;
}

void add_integers(GradientCodec& codec, const FusedGradients& message, const CodedMessage& coded, FlatTensors& sums) {
  decode_add_all(codec, message, in_buckets(codec, message, ones), coded, sums);
}

int64_t packed_integer_bytes(int64_t count, int64_t most) {
  return kernels::code_bytes(count, kernels::code_bits(most));
}

Tensor pack_integers(const Tensor& x, int64_t most) {
  Tensor packed = Tensor::empty({packed_integer_bytes(x.numel(), most)}, {.dtype = DType::u8, .device = x.device()});
  // Quantization keeps a whole number of units exactly, for any random draw, so that the key does not matter.
  const kernels::CodedGradient coded = {x, unit_for(x), packed, {}};
  kernels::quantize({&coded, 1}, 0, most);
  return packed;
}

void add_packed_integers(const Tensor& packed, int64_t most, Tensor& sum) {
  const kernels::DecodedGradient decoded = {sum};
  kernels::dequantize_add({&decoded, 1}, packed.reshape({1, packed.numel()}), unit_for(sum), 0, most);
}

std::vector<Tensor> means_of_integers(const ScaledCodec& codec, const std::vector<Tensor>& scalers, FlatTensors sums,
                                      int ranks) {
  for (size_t i = 0; i < sums.parts.size(); ++i) multiply_buckets(scalers[i], codec.bucket(), sums.parts[i]);
  return means(std::move(sums), ranks);
}

}  // namespace tern
