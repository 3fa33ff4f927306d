#include "tern/dist/exchange/shards.h"

#include <algorithm>
#include <numeric>

#include "tern/dist/codec/finite.h"

namespace tern {

std::vector<Shard> cut_into_shards(const std::vector<int64_t>& counts, int ranks, int64_t granule) {
  const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  std::vector<Shard> shards(static_cast<size_t>(ranks));
  int64_t before = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const int64_t count = counts[i];
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

SliceCodec::Buckets SliceCodec::buckets(const Slice& slice) const {
  const int64_t width = codec_.bucket();
  return width == 0 ? Buckets{0, 1} : Buckets{slice.begin / width, (slice.end + width - 1) / width};
}

int64_t SliceCodec::bytes(const Slice& slice) const {
  return codec_.code_bytes(slice.count()) + (shares() ? 0 : 4 * buckets(slice).count());
}

void SliceCodec::append(const Slice& slice, const Tensor& scalers, std::span<const std::byte> codes,
                        std::vector<std::byte>& bytes) const {
  const auto [first, last] = buckets(slice);
  if (!shares()) append_values<float>(bytes, scalers.slice(first, last).span<float>());
  const auto begin = static_cast<size_t>(codec_.code_bytes(slice.begin));
  append_values(bytes, codes.subspan(begin, static_cast<size_t>(codec_.code_bytes(slice.count()))));
}

void SliceCodec::add(const Slice& slice, const Tensor& shared, ByteReader& bytes, Tensor sum) const {
  const auto [first, last] = buckets(slice);
  const Tensor scalers = shares() ? shared.slice(first, last) : Tensor::empty({last - first});
  if (!shares()) {
    bytes.values(scalers.span<float>());
    check_scalers(scalers.span<float>());
  }
  // A slice may begin within a bucket: the rest of that, then whole ones.
  const int64_t width = codec_.bucket(), begun = width == 0 ? 0 : slice.begin % width;
  const int64_t rest = begun == 0 ? 0 : std::min(width - begun, slice.count());
  const auto add_codes = [&](int64_t begin, int64_t end, const Tensor& units) {
    if (begin == end) return;
    Tensor part = sum.slice(begin, end);
    codec_.add_codes(bytes.take(static_cast<size_t>(codec_.code_bytes(end - begin))), units, part);
  };
  add_codes(0, rest, scalers.slice(0, 1));
  add_codes(rest, slice.count(), scalers.slice(rest > 0 ? 1 : 0, last - first));
}

}  // namespace tern
