#include "tern/dist/exchange/coded.h"

#include "tern/core/error.h"
#include "tern/dist/codec/bytes.h"

namespace tern {

CodedMessage encode_all(GradientCodec& codec, const FusedGradients& message, const std::vector<Tensor>& scalers) {
  std::vector<std::byte> bytes;
  CodedMessage coded;
  for (size_t i = 0; i < message.size(); ++i) {
    const auto& [tag, gradient] = message[i];
    const size_t begin = bytes.size();
    if (scalers.empty())
      codec.encode(tag, gradient, bytes);
    else if (gradient.numel() != 0)
      codec.shared_scale()->append_codes(tag, gradient, scalers[i], bytes);
    coded.lengths.push_back(static_cast<int64_t>(bytes.size() - begin));
  }
  coded.bytes = Tensor::empty({static_cast<int64_t>(bytes.size())}, {.dtype = DType::u8});
  if (!bytes.empty()) std::memcpy(coded.bytes.raw_data(), bytes.data(), bytes.size());
  return coded;
}

void decode_add_all(const GradientCodec& codec, const FusedGradients& message, const std::vector<Tensor>& scalers,
                    const CodedMessage& coded, FlatTensors& sums) {
  ByteReader reader(std::as_bytes(coded.bytes.span<uint8_t>()));
  for (size_t i = 0; i < message.size(); ++i) {
    const auto bytes = reader.take(static_cast<size_t>(coded.lengths[i]));
    if (scalers.empty())
      codec.decode_add(message[i].tag, bytes, sums.parts[i]);
    else if (sums.parts[i].numel() != 0)
      codec.shared_scale()->add_codes(bytes, scalers[i], sums.parts[i]);
  }
}

std::vector<std::vector<int64_t>> lengths_of_all(const GradientCodec& codec, const std::vector<int64_t>& lengths,
                                                 Communicator& communicator) {
  std::vector<std::vector<int64_t>> all(static_cast<size_t>(communicator.size()), lengths);
  if (codec.traits().fixed_size) return all;
  const auto tensors = static_cast<int64_t>(lengths.size());
  const Tensor mine = Tensor::from<int64_t>({tensors}, lengths);
  const Tensor everyones = Tensor::empty({communicator.size(), tensors}, {.dtype = DType::i64});
  communicator.all_gather(mine, everyones, Account::overhead).wait();
  for (int64_t rank = 0; rank < communicator.size(); ++rank)
    all[static_cast<size_t>(rank)] = everyones.slice(rank, rank + 1).to_vector<int64_t>();
  for (const auto& of_rank : all)
    for (const int64_t length : of_rank)
      check(length >= 0, "exchange: a tensor's message has ", length, " bytes, expected 0 or more");
  return all;
}

}  // namespace tern
