#pragma once

#include "tern/dist/bytes.h"
#include "tern/dist/exchange.h"

namespace tern {

/// Elements [begin, end) of a message's tensor, flattened.
struct Slice {
  size_t tensor;
  int64_t begin, end;

  int64_t count() const { return end - begin; }
};
/// What one rank averages: of each tensor one slice at most.
using Shard = std::vector<Slice>;

/// A shard for each rank of a message whose tensors have `counts` elements: alike in elements, but that tensors are cut
/// at multiples of `granule` alone.
std::vector<Shard> cut_into_shards(const std::vector<int64_t>& counts, int ranks, int64_t granule);

/// Slices of coded tensors: the scalers of the buckets that a slice has elements of, unless all ranks share theirs,
/// then its codes. A bucket is a tensor, or a multiple of the granule.
class SliceCodec {
 public:
  explicit SliceCodec(const ScaledCodec& codec) : codec_(codec) {}

  bool shares() const { return codec_.sharing() == ScalerSharing::on; }
  int64_t bytes(const Slice& slice) const;
  /// From all the tensor's scalers and codes.
  void append(const Slice& slice, const Tensor& scalers, std::span<const std::byte> codes,
              std::vector<std::byte>& bytes) const;
  /// sum += the slice, of which `sum` is f32 [count]; `shared`: the tensor's scalers where ranks share them.
  void add(const Slice& slice, const Tensor& shared, ByteReader& bytes, Tensor sum) const;

 private:
  struct Buckets {
    int64_t begin, end;
    int64_t count() const { return end - begin; }
  };
  Buckets buckets(const Slice& slice) const;

  const ScaledCodec& codec_;
};

}  // namespace tern
