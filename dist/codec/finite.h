#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tern/core/notices.h"
#include "tern/dist/codec/codec.h"

namespace tern {

/// max |g|, Σg and Σg² of each bucket (kernels::gradient_statistics): f64 [buckets, 3], on the CPU. Throws InputError
/// that names the tensor if an element is NaN or infinite.
Tensor finite_statistics(const GradientTag& tag, const Tensor& gradient, int64_t bucket);
/// The statistics of all gradients of a message, one gradient after the other: f64 [buckets, 3], on the CPU.
Tensor finite_statistics(const FusedGradients& message, int64_t bucket);
/// What is wrong with a gradient whose norm is not finite.
inline constexpr const char* kNotFinite = "has NaN or infinite elements, or a norm beyond f32";
/// Throws InputError that names the tensor unless all `numbers` are finite. The numbers are computed from the gradient,
/// and are finite if the gradient is, unless they leave the range of f32.
void check_finite(const GradientTag& tag, std::span<const float> numbers, const char* fault = kNotFinite);
/// The f32 numbers in these bytes, which are on the CPU.
std::vector<float> floats_of(const Tensor& bytes);
/// Finds gradients that a codec cannot encode, without a wait for the device that has them: kernels leave notices. One
/// thread at a time.
class GradientWatch {
 public:
  /// `fault` says what is wrong with such a gradient.
  explicit GradientWatch(std::string fault = kNotFinite) : fault_(std::move(fault)) {}

  /// Gradient i of the message, on a CUDA device, is at fault if a number of numbers[i] is NaN or beyond ±most. The
  /// numbers are f32, or their bytes: the gradient itself, or what a codec has computed from it.
  void note(const FusedGradients& message, std::span<const Tensor> numbers, float most);
  /// See GradientCodec::confirm.
  void confirm(int64_t steps) const;

 private:
  /// The notices of one message, by tensor.
  struct Noted {
    std::vector<std::string> names;
    Notices notices;
  };

  std::string fault_;
  std::map<std::string, Noted> noted_;  // by the tag of the message
};

/// Throws unless all scalers of a message are finite and not negative.
void check_scalers(std::span<const float> scalers);

}  // namespace tern
