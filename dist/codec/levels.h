#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tern/core/random.h"
#include "tern/core/tensor.h"
#include "tern/dist/codec/codec.h"
#include "tern/dist/codec/finite.h"
#include "tern/kernels/codec.h"

namespace tern {

/// How whole numbers within ±levels become bytes.
enum class Packing : uint8_t {
  fixed,    ///< bit planes (kernels::code_bytes)
  trits,    ///< five numbers per byte; only with one level
  elias,    ///< Elias omega codes (entropy_coders.h)
  entropy,  ///< a byte that tells the packing, then the shortest of rANS, bit planes and, if n is small, Elias
};

bool is_fixed_size(Packing packing);
/// Codes take whole bytes from each multiple of this many elements on; 0 if the size varies.
int64_t packing_granule(Packing packing);
int64_t most_packed_bytes(Packing packing, int64_t n, int64_t levels);

/// Appends the levels that `codes` hold. `codes` are bit planes of n elements.
void append_packed(Packing packing, const Tensor& codes, int64_t n, int64_t levels, std::vector<std::byte>& bytes);
/// sum += level · unit of its bucket. `units` is f32 [buckets]. Throws if `bytes` have the wrong size and,
/// unless they are bit planes, if they do not hold valid levels.
void add_packed(Packing packing, std::span<const std::byte> bytes, const Tensor& units, int64_t bucket, int64_t levels,
                Tensor& sum);

/// Messages of bit planes (kernels/codec.h), encoded and decoded on the gradients' device. A message holds the units of
/// all gradients, unless ranks share them, then the codes of each gradient.
struct Planes {
  int64_t bucket = 0, levels = 1;
  bool by_fields = false;  ///< a bucket has whole receptive fields: as many as fit, at least one

  /// Elements of a tensor's buckets; 0: the whole tensor.
  int64_t bucket_of(const Shape& shape) const;
  /// Encodes with these units, f32 [units of all gradients]; the message leaves them out. If `clips` is defined,
  /// gradients are first clipped to ± these, as many as the units. Both are on the gradients' device.
  Tensor encode(const FusedGradients& message, const Tensor& units, const Tensor& clips = {}) const;
  /// Encodes with units by a rule, which must be finite: on the CPU, throws InputError that names the tensor if one is
  /// not; on another device, `watch` notes it.
  Tensor encode(const FusedGradients& message, const kernels::UnitRule& rule, GradientWatch& watch) const;
  /// The units by a rule, of all gradients, on their device. They must be finite, too.
  Tensor units(const FusedGradients& message, const kernels::UnitRule& rule, GradientWatch& watch) const;
  /// Packs the codes of such a message with Packing::trits. The units stay in front of all codes.
  Tensor with_trits(const FusedGradients& message, const Tensor& planes, bool holds_units) const;
  /// Turns several of these, u8 [messages, bytes], back into messages of bit planes. The gradients have the sizes of
  /// `sums`.
  Tensor without_trits(const Tensor& messages, std::span<const Tensor> sums, bool hold_units) const;
  /// Packs such a message with Packing::elias or entropy: for each gradient its units, if `holds_units`, then its
  /// codes.
  CodedMessage packed(const FusedGradients& message, const Tensor& planes, bool holds_units, Packing packing) const;
  /// Turns several of these, one after the other in `bytes`, back into messages of bit planes: u8 [messages, bytes].
  /// `lengths`: the bytes of each gradient of each message. The gradients have the sizes of `sums`.
  Tensor unpacked(const Tensor& bytes, std::span<const int64_t> lengths, std::span<const Tensor> sums, bool hold_units,
                  Packing packing) const;
  /// See MessageCodec::decode_add.
  void decode_add(const Tensor& messages, const Tensor& shared, std::span<const Tensor> sums) const;

 private:
  /// Calls run(gradients, bucket) once for each length of buckets.
  template <class Gradient, class Run>
  void by_bucket(const std::vector<Gradient>& gradients, Run run) const;
};

/// What codecs of bit planes share on the gradients' device: whole messages of bit planes or trits, and messages of
/// Elias or entropy codes in parts.
class PlanesCodec : public MessageCodec, public PartsCodec {
 public:
  PlanesCodec(const Planes& planes, Packing packing) : planes_(planes), packing_(packing) {}

  Tensor encode(const FusedGradients& message, const Tensor& shared) override;
  void decode_add(const Tensor& messages, const Tensor& shared, std::span<const Tensor> sums) const override;
  CodedMessage encode_parts(const FusedGradients& message, const Tensor& shared) override;
  void decode_add_parts(const Tensor& bytes, std::span<const int64_t> lengths, const Tensor& shared,
                        std::span<const Tensor> sums) const override;

 protected:
  /// A whole message of bit planes: MessageCodec::encode.
  virtual Tensor encode_planes(const FusedGradients& message, const Tensor& shared) = 0;

  const Planes planes_;
  const Packing packing_;
  mutable GradientWatch watch_;
};

}  // namespace tern
