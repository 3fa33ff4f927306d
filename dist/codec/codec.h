#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tern/core/random.h"
#include "tern/core/state_dict.h"
#include "tern/core/tensor.h"

namespace tern {

/// Whose gradient this is: the tensor's name, for messages and state, and its random numbers (purpose codec; owner: the
/// rank that encodes).
struct GradientTag {
  std::string name;
  RandomKey key;
};

/// What a codec promises of the gradient that comes back.
enum class CodecPromise : uint8_t {
  exact,        ///< every bit
  unbiased,     ///< the expectation is the gradient, clipped where the codec clips
  contraction,  ///< biased; nearer to the gradient than zero is
  feedback,     ///< what one message leaves out, later ones bring
};
std::string to_string(CodecPromise promise);

struct CodecTraits {
  CodecPromise promise = CodecPromise::unbiased;
  double bits = 32;        ///< of one element, without scalers and headers; of variable codes, the most
  bool fixed_size = true;  ///< every message of a tensor has `most_bytes`
};

/// One rank's gradient of a tensor: f32, row-major.
struct TaggedGradient {
  GradientTag tag;  ///< key.owner: this rank
  Tensor gradient;
};

/// Gradients that travel as one message, all on one device. Scalers, tables and random numbers stay each tensor's own.
using FusedGradients = std::vector<TaggedGradient>;

class MessageCodec;
class ScaledCodec;

/// How a gradient becomes bytes and comes back: local mathematics of one rank, which cannot communicate. Gradients are
/// f32, row-major, on the CPU; a tensor of no elements has no bytes. An error names the codec and the tensor. Not
/// thread-safe: a codec may keep a residual per tensor.
class GradientCodec {
 public:
  virtual ~GradientCodec() = default;

  /// As a person would write it, with every parameter.
  virtual std::string spec() const = 0;
  virtual CodecTraits traits() const = 0;
  /// The most bytes that a tensor of this shape takes.
  virtual int64_t most_bytes(const Shape& shape) const = 0;

  /// Appends the message for `gradient` to `bytes`. An InputError where an element is NaN or infinite.
  void encode(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes);
  /// sum += the gradient that `message` holds, in f32 without fused multiply-add: the same bits on every rank. An error
  /// where `message` is none for this shape; then some elements of `sum` may have changed.
  void decode_add(const GradientTag& tag, std::span<const std::byte> message, Tensor& sum) const;

  /// ω of an unbiased codec: E‖decoded - g‖² is at most ω‖g‖² (of the clipped gradient where it clips). 0 for others.
  virtual double omega(const GradientTag& tag, const Tensor& gradient) const;
  /// The codec with its scalers apart, for exchanges that cut or sum codes; null where it has none.
  virtual const ScaledCodec* scaled() const { return nullptr; }
  /// The codec of whole messages, on any device; null where it has none, and gradients are coded one by one on the CPU.
  virtual const MessageCodec* messages() const { return nullptr; }

  /// What it keeps from step to step, by tensor; empty where nothing. To be saved, and loaded into an equal codec.
  virtual StateDict state() const { return {}; }
  virtual void load_state(const StateDict& state);

 protected:
  /// `encode` of a tensor that has elements.
  virtual void append(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) = 0;
  /// `decode_add` of a message of `most_bytes`, at most that many where the size is not fixed.
  virtual void add(std::span<const std::byte> message, Tensor& sum) const = 0;
  /// `codec.add` on a message whose size is right, for codecs that wrap a codec.
  static void add_checked(const GradientCodec& codec, std::span<const std::byte> message, Tensor& sum);
};

/// Whether ranks agree on one scaler: where the exchange needs it, always, or never.
enum class ScalerSharing : uint8_t { automatic, on, off };

/// A codec whose codes are whole numbers times one scaler a bucket. Codes of several ranks can be summed as integers
/// where all use the largest scaler of all ranks in each bucket (TernGrad eq. 4), and codes of fixed size be cut.
class ScaledCodec {
 public:
  virtual ~ScaledCodec() = default;
  /// f32 [buckets]: this rank's own scalers.
  virtual Tensor scalers(const GradientTag& tag, const Tensor& gradient) const = 0;
  /// Appends the codes alone, with these scalers.
  virtual void append_codes(const GradientTag& tag, const Tensor& gradient, const Tensor& scalers,
                            std::vector<std::byte>& bytes) const = 0;
  /// sum += scaler · code. With scalers of 1: the integers.
  virtual void add_codes(std::span<const std::byte> codes, const Tensor& scalers, Tensor& sum) const = 0;

  virtual ScalerSharing sharing() const = 0;
  /// Elements of a scaler; 0: a tensor's.
  virtual int64_t bucket() const = 0;
  /// Codes are within ±levels.
  virtual int64_t levels() const = 0;
  /// Of n codes; the most where their size varies.
  virtual int64_t code_bytes(int64_t n) const = 0;
  /// Codes can be cut before each multiple of so many elements; 0: nowhere, their size varies.
  virtual int64_t granule() const = 0;
  /// The same codes for sums of decoded gradients: scaled by the largest magnitude, nothing clipped.
  virtual std::unique_ptr<GradientCodec> for_sums() const = 0;
};

/// A codec of fixed size that makes and reads whole messages where their gradients are, on the CPU or a device: the
/// same bytes everywhere, all tensors at once. A message is the scalers of all its gradients, f32, then the codes of
/// each.
class MessageCodec {
 public:
  virtual ~MessageCodec() = default;
  /// f32 [scalers of all gradients], on the CPU: this rank's own.
  virtual Tensor scalers(const FusedGradients& message) const = 0;
  /// u8 [bytes] beside the gradients. Where `shared` is defined, codes alone, with these scalers.
  virtual Tensor encode(const FusedGradients& message, const Tensor& shared) const = 0;
  /// sums[i] += gradient i of each of `messages` in turn, u8 [messages, bytes] beside the sums: the same bits as one by
  /// one. On the CPU an error where a scaler is negative or not finite; a device takes them as their sender checked
  /// them.
  virtual void decode_add(const Tensor& messages, const Tensor& shared, std::span<const Tensor> sums) const = 0;
};

class CodecOptions;

/// A codec that specs can name; the texts are for people.
struct CodecEntry {
  const char* name;
  const char* parameters;  ///< with their defaults and choices
  const char* bits;        ///< per element
  const char* promise;
  /// Asks for the parameters, each of which has a default, then for `options.finish()`.
  std::unique_ptr<GradientCodec> (*make)(CodecOptions& options);
};

/// The codec of a spec such as `ternary:clip=2.5` or `error-feedback:qsgd:bits=4,bucket=512`: one of tern's, or one of
/// the caller's `own`. An InputError names the part that is wrong and what would be right.
std::unique_ptr<GradientCodec> make_codec(std::string_view spec, std::span<const CodecEntry> own = {});

/// The names that specs may begin with.
std::vector<std::string> codec_names(std::span<const CodecEntry> own = {});

/// Every codec with its parameters, bits per element and promise, for `--codec help`.
std::string codec_help(std::span<const CodecEntry> own = {});

}  // namespace tern
