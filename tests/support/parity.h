#pragma once

#include <deque>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "tern/kernels/kernel.h"

namespace tern::test {

/// One run of a kernel: gives a case its random arguments, and NaN-filled outputs to compare. Equal calls give equal
/// arguments on every target; the oracle gets the same values in f64.
class Run {
 public:
  Run(Target target, DType dtype, MemoryFormat format, bool oracle)
      : target_(target), dtype_(dtype), format_(format), oracle_(oracle) {}

  /// Activations, uniform in [low, high), in the format under test where they have four dimensions.
  Tensor input(const Shape& shape, double low = -1, double high = 1);
  /// The same as a parameter or statistic: of `parameter_dtype`, row-major.
  Tensor parameter(const Shape& shape, double low = -1, double high = 1);
  /// Activations with these values in row-major order: infinities, NaN, ties.
  Tensor given(const Shape& shape, const std::vector<float>& values);
  /// i64 in [0, below).
  Tensor integers(const Shape& shape, uint32_t below);

  Tensor& output(const Shape& shape);
  /// Row-major, whatever the format under test.
  Tensor& row_major_output(const Shape& shape);
  Tensor& parameter_output(const Shape& shape);
  Tensor& output_as(DType dtype, const Shape& shape);
  /// An argument that the kernel changes.
  Tensor& changed(Tensor initial);

  template <class... Parameters>
  void operator()(const Kernel<void(Parameters...)>& kernel, std::type_identity_t<Parameters>... arguments) const {
    kernel.on(target_)(arguments...);
  }

  /// Where the target runs.
  Device device() const;
  const std::deque<Tensor>& outputs() const { return outputs_; }

 private:
  Tensor activations(const Tensor& values) const;
  MemoryFormat format_of(const Shape& shape) const;

  Target target_;
  DType dtype_;
  MemoryFormat format_;
  bool oracle_;
  uint32_t draws_ = 0;
  std::deque<Tensor> outputs_;  // references stay valid as it grows
};

struct ParityOptions {
  bool bf16 = true;
  bool channels_last = true;
  bool exact = false;  ///< every bit of the reference's
};

/// One row of the table: a kernel, a name for the case, and how to run it.
struct ParityCase {
  const KernelBase* kernel;
  std::string name;
  std::function<void(Run&)> body;
  ParityOptions options = {};
};
using ParityTable = std::vector<ParityCase>;

/// Largest difference over largest value, and squared differences over squared values, that still pass.
struct Tolerance {
  double largest = 0, squared = 0;
};
/// Empty where `found` is close enough to `expected`; else the errors and the worst element. NaN equals NaN alone.
std::string difference(const Tensor& found, const Tensor& expected, const Tolerance& tolerance);

/// Runs the case on those of `targets` that this build provides, in every dtype and format it asks for, and compares
/// with the reference in f64. Returns one line per difference: target, dtype, format, output, error and worst element.
std::vector<std::string> parity_differences(const ParityCase& row,
                                            const std::vector<Target>& targets = {Target::reference, Target::cpu});

}  // namespace tern::test
