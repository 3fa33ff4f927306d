#include "tern/dist/exchange/shards.h"

#include <algorithm>

#include "tern/core/error.h"

namespace tern {

int64_t elements_of(const Shard& shard) {
  int64_t count = 0;
  for (const Slice& slice : shard) count += slice.count();
  return count;
}

std::vector<Shard> cut_into_shards(std::span<const CutTensor> tensors, int ranks) {
  int64_t total = 0, before = 0;
  for (const CutTensor& tensor : tensors) total += tensor.count;
  std::vector<Shard> shards(static_cast<size_t>(ranks));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t count = tensors[i].count, granule = tensors[i].granule;
    const auto cut = [&](int64_t rank) {
      const int64_t within = total * rank / ranks - before;
      return within >= count ? count : std::max<int64_t>(0, within) / granule * granule;
    };
    for (int rank = 0; rank < ranks; ++rank)
      if (cut(rank) < cut(rank + 1)) shards[static_cast<size_t>(rank)].push_back({i, cut(rank), cut(rank + 1)});
    before += count;
  }
  return shards;
}

ComingShard send_shards(Communicator& communicator, const Tensor& codes, const std::vector<int64_t>& bytes) {
  const int64_t own = bytes[static_cast<size_t>(communicator.rank())];
  const std::vector<int64_t> receives(bytes.size(), own);
  Tensor coming = Tensor::empty({communicator.size(), own}, codes.options());
  const Work work = communicator.all_to_all(codes, bytes, coming, receives);
  return {coming, work};
}

MessageCodec& messages_to_cut(GradientCodec& codec) {
  check_input(codec.messages() != nullptr, "exchange reduce-scatter: codec ", codec.spec(),
              " makes no whole messages (MessageCodec), from which codes can be cut; expected allgather or server for "
              "this codec");
  return *codec.messages();
}

}  // namespace tern
