#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tern/core/error.h"
#include "tern/core/state_dict.h"
#include "tern/core/tensor.h"
#include "tern/dist/codec/fused_gradients.h"
#include "tern/kernels/options.h"

namespace tern {

/// What a codec guarantees about the decoded gradient.
enum class CodecPromise : uint8_t {
  exact,        ///< the decoded gradient has the same bits
  unbiased,     ///< the expectation is the gradient, or the clipped gradient if the codec clips
  contraction,  ///< biased, but nearer to the gradient than zero is
  feedback,     ///< later messages bring what one message leaves out
};
std::string to_string(CodecPromise promise);

/// The properties of a codec that callers need to choose and size its messages.
struct CodecTraits {
  CodecPromise promise = CodecPromise::unbiased;
  double bits = 32;        ///< per element, without scalers and headers; the most if the code size varies
  bool fixed_size = true;  ///< every message of a tensor has exactly `most_bytes`
  /// Each row of a tensor (all weights of an output unit) is coded by itself. So rows [a, b) of a tensor decode to the
  /// same values if they travel as a tensor of their own. A vector is one row.
  bool by_rows = false;
  /// Each element is coded by itself, in most_bytes({1}) bytes, and the codes follow one another in the tensor's order.
  /// So a message can be cut between any two elements. The codec must have `messages()`.
  bool by_elements = false;
  /// A message leaves out most elements, which decode to 0.
  bool sparse = false;
};

class FeedbackCodec;
class MessageCodec;
class PartsCodec;
class ScaledCodec;

/// Encodes a gradient as bytes and decodes it. A codec computes on one rank and does not communicate. Gradients are
/// f32, row-major, on the CPU. A tensor without elements takes no bytes. Errors name the codec and the tensor. Not
/// thread-safe: a codec may keep a residual per tensor.
class GradientCodec {
 public:
  virtual ~GradientCodec() = default;

  /// The spec as a person writes it, with every parameter.
  virtual std::string spec() const = 0;
  virtual CodecTraits traits() const = 0;
  /// The largest number of bytes that a message for a tensor of this shape takes.
  virtual int64_t most_bytes(const Shape& shape) const = 0;

  /// Appends the message for `gradient` to `bytes`. Throws InputError if an element is NaN or infinite.
  void encode(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes);
  /// sum += the gradient that `message` holds, in f32 without fused multiply-add, so that every rank gets the same
  /// bits. Throws if `message` is not valid for this shape. Some elements of `sum` may have changed when it throws.
  void decode_add(const GradientTag& tag, std::span<const std::byte> message, Tensor& sum) const;

  /// ω of an unbiased codec: E‖decoded - g‖² is at most ω‖g‖². If the codec clips, g is the clipped gradient. Returns 0
  /// for other codecs.
  virtual double omega(const GradientTag& tag, const Tensor& gradient) const;
  /// The codec with its scalers apart, for exchanges that cut or sum codes; null if the codec has no such form.
  virtual const ScaledCodec* scaled() const { return nullptr; }
  /// The codec of whole messages, on any device; null if the codec has no such form. Then gradients are coded one by
  /// one on the CPU.
  virtual MessageCodec* messages() { return nullptr; }
  /// The codec of messages in parts, on any device; null if the codec has no such form.
  virtual PartsCodec* parts() { return nullptr; }

  /// Throws InputError that names the tensor if a gradient on a device, of a step before `steps`, could not be encoded:
  /// `MessageCodec::encode` does not wait for the device to find out. It tells of all messages that were encoded before
  /// something that the caller has read from the device since. Gradients on the CPU need no such call.
  virtual void confirm(int64_t /*steps*/) const {}

  /// Whether `messages()` or `parts()` can be recorded on a device, and run again in later steps (kernels/recording.h):
  /// they do not wait for the device, only kernels read the step of a key, and each residual stays in its memory.
  virtual bool can_be_recorded() const { return false; }

  /// The codec with its residuals apart; null if the codec has no error feedback.
  virtual FeedbackCodec* feedback() { return nullptr; }

  /// What the codec keeps from step to step, by tensor; empty if it keeps nothing. Save it, and load it into an equal
  /// codec.
  virtual StateDict state() const { return {}; }
  virtual void load_state(const StateDict& state);

 protected:
  /// Does the work of `encode` for a tensor that has elements.
  virtual void append(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) = 0;
  /// Does the work of `decode_add`. The message has `most_bytes`, or at most that many if the size is not fixed.
  virtual void add(std::span<const std::byte> message, Tensor& sum) const = 0;
  /// Calls `codec.add` after it checks the message size. For codecs that wrap another codec.
  static void add_checked(const GradientCodec& codec, std::span<const std::byte> message, Tensor& sum);
};

/// When ranks share one scaler: if the exchange needs it, always, or never.
enum class ScalerSharing : uint8_t { automatic, on, off };

/// Whether the spec of the codec asks for one scaler for all ranks.
bool shares_scalers(const GradientCodec& codec);

/// A codec whose codes are whole numbers times one scaler per bucket. Codes of several ranks can be summed as integers
/// if all ranks use the largest scaler of all ranks in each bucket (TernGrad eq. 4). Codes of fixed size can be cut.
class ScaledCodec {
 public:
  virtual ~ScaledCodec() = default;
  /// This rank's own scalers: f32 [buckets].
  virtual Tensor scalers(const GradientTag& tag, const Tensor& gradient) const = 0;
  /// Appends only the codes, made with these scalers.
  virtual void append_codes(const GradientTag& tag, const Tensor& gradient, const Tensor& scalers,
                            std::vector<std::byte>& bytes) const = 0;
  /// sum += scaler · code. With scalers of 1, this adds the integers.
  virtual void add_codes(std::span<const std::byte> codes, const Tensor& scalers, Tensor& sum) const = 0;

  virtual ScalerSharing sharing() const = 0;
  /// Elements per scaler; 0 means all elements of the tensor.
  virtual int64_t bucket() const = 0;
  /// Codes are within ±levels.
  virtual int64_t levels() const = 0;
  /// Bytes of n codes; the most if their size varies.
  virtual int64_t code_bytes(int64_t n) const = 0;
  /// Codes can be cut before each multiple of this many elements; 0 if they cannot be cut, because their size varies.
  /// To be cut by reduce-scatter, the codec must have `messages()`.
  virtual int64_t granule() const = 0;
  /// The same codes for sums of decoded gradients: the largest magnitude sets the scaler, and nothing is clipped.
  virtual std::unique_ptr<GradientCodec> for_sums() const = 0;
};

/// A codec with error feedback, for exchanges that encode a tensor in several parts.
class FeedbackCodec {
 public:
  virtual ~FeedbackCodec() = default;
  /// The codec without feedback, which encodes the parts.
  virtual GradientCodec& inner() = 0;
  /// Gradient + residual of each tensor: new tensors on the CPU, and on a device the residuals themselves, which keep
  /// their place in memory, so that recorded work finds them there.
  virtual FusedGradients corrected(const FusedGradients& message) = 0;
  /// Keeps the residual: what the parts that were sent leave out of `corrected`.
  virtual void keep(const GradientTag& tag, Tensor residual) = 0;
  /// The same codec, with residuals of its own.
  virtual std::unique_ptr<GradientCodec> fresh() const = 0;
};

/// A codec of fixed size that encodes and decodes whole messages, all tensors at once, on the gradients' device (the
/// CPU or another). The bytes are the same on every device. If the codec has scalers, a message holds the f32 scalers
/// of all its gradients first, then the codes of each gradient.
class MessageCodec {
 public:
  virtual ~MessageCodec() = default;
  /// This rank's own scalers: f32 [scalers of all gradients], on the gradients' device; empty if the codec has none.
  virtual Tensor scalers(const FusedGradients& message) = 0;
  /// Returns u8 [bytes] on the gradients' device. If `shared` is defined, the message holds only codes, made with these
  /// scalers, which are on the same device. Can change the codec's residuals. On the CPU, throws InputError that names
  /// the tensor if an element is NaN or infinite. On another device, override `GradientCodec::confirm` to do so; the
  /// message holds anything until then.
  virtual Tensor encode(const FusedGradients& message, const Tensor& shared) = 0;
  /// Encodes gradient i - minus[i], if minus[i] is defined. Unless a codec overrides it, this computes the differences
  /// first.
  virtual Tensor encode_difference(const FusedGradients& message, std::span<const Tensor> minus);
  /// sums[i] += gradient i of each of `messages` in turn. `messages` is u8 [messages, bytes]; it and `shared` are on
  /// the device of the sums. The result has the same bits as decoding the messages one by one. On the CPU, throws if a
  /// message is not valid, for example if a scaler is negative or not finite; some elements of the sums may have
  /// changed then. Other devices do not check this, because the sender does.
  virtual void decode_add(const Tensor& messages, const Tensor& shared, std::span<const Tensor> sums) const = 0;
  /// from[i] -= gradient i of `message`, u8 [bytes]: what the message leaves out of `from`. Unless a codec overrides
  /// it, this decodes the message into a new tensor.
  virtual void subtract(const Tensor& message, const Tensor& shared, std::span<const Tensor> from) const;
  /// The mean of each of the gradients `like` over `messages`: new tensors, with the bits of `decode_add` to zeros. An
  /// element of the mean over the senders is 0 if nobody sent it. Returns nothing if the codec has no way of its own to
  /// the means.
  virtual std::vector<Tensor> means(const Tensor& messages, kernels::MeanOver over, const FusedGradients& like) const;
};

/// The coded tensors of one rank's message, one after the other.
struct CodedMessage {
  Tensor bytes;                  ///< u8
  std::vector<int64_t> lengths;  ///< bytes of each tensor; one entry if the codec makes whole messages
};

/// A codec that codes all tensors of a message at once, on the gradients' device, one part for each. The sizes of the
/// parts may vary. A part has the bytes that GradientCodec makes of its tensor, or ScaledCodec if ranks share scalers.
/// On the CPU these are faster.
class PartsCodec {
 public:
  virtual ~PartsCodec() = default;
  /// As MessageCodec::scalers.
  virtual Tensor scalers(const FusedGradients& message) = 0;
  /// `shared` and `confirm` as in MessageCodec::encode. The bytes are on the gradients' device. Waits for the device if
  /// sizes vary, because the caller needs the lengths.
  virtual CodedMessage encode_parts(const FusedGradients& message, const Tensor& shared) = 0;
  /// sums[i] += tensor i of each message in turn, as MessageCodec::decode_add. The messages follow each other in
  /// `bytes`, u8 on the device of the sums. `lengths` holds the bytes of each tensor of each message.
  virtual void decode_add_parts(const Tensor& bytes, std::span<const int64_t> lengths, const Tensor& shared,
                                std::span<const Tensor> sums) const = 0;
};

/// A codec without scalers that is written as a MessageCodec. The message of one gradient is a whole message with
/// nothing else.
class WholeMessageCodec : public GradientCodec, public MessageCodec {
 public:
  MessageCodec* messages() override { return this; }
  Tensor scalers(const FusedGradients& message) override;

 protected:
  void append(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) override;
  void add(std::span<const std::byte> message, Tensor& sum) const override;
  /// Uninitialized bytes for this message: u8, on the gradients' device.
  Tensor empty_message(const FusedGradients& message) const;
  /// Calls decode(at, tensor) for each tensor. Its code begins at byte `at` of each message, u8 [messages, bytes].
  /// Throws before that unless the messages have the bytes of these tensors.
  template <class Decode>
  void each_code(const Tensor& messages, std::span<const Tensor> tensors, Decode decode) const {
    int64_t bytes = 0, at = 0;
    for (const Tensor& tensor : tensors) bytes += most_bytes(tensor.shape());
    check(messages.size(1) == bytes, "messages have ", messages.size(1), " bytes, expected ", bytes);
    for (Tensor tensor : tensors) {
      decode(at, tensor);
      at += most_bytes(tensor.shape());
    }
  }
};

/// Whether the codec can code gradients on a device other than the CPU.
bool codes_on_devices(GradientCodec& codec);

class SpecParameters;

/// A codec that a spec can name. The texts are for people.
struct CodecEntry {
  const char* name;
  const char* parameters;  ///< with defaults and choices
  const char* bits;        ///< per element
  const char* promise;
  /// Asks `options` for the parameters, then calls `options.finish()`. Each parameter has a default.
  std::unique_ptr<GradientCodec> (*make)(SpecParameters& options);
};

/// Makes the codec of a spec such as `ternary:clip=2.5` or `error-feedback:qsgd:bits=4,bucket=512`: one of tern's
/// codecs, or one of the caller's `own`. Throws InputError that names the wrong part and what is allowed.
std::unique_ptr<GradientCodec> make_codec(std::string_view spec, std::span<const CodecEntry> own = {});

/// The names with which a spec may begin, except error-feedback.
std::vector<std::string> codec_names(std::span<const CodecEntry> own = {});

/// Every codec with its parameters, bits per element and promise, for `--codec help`.
std::string codec_help(std::span<const CodecEntry> own = {});

}  // namespace tern
