#pragma once

#include <deque>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "tern/kernels/kernel.h"

namespace tern::test {

/// One run of a kernel. It gives a case random arguments, and outputs to compare that are filled with NaN. Equal calls
/// give equal arguments on every target. The oracle gets the same values in f64.
class Run {
 public:
  Run(Target target, DType dtype, MemoryFormat format, bool oracle)
      : target_(target), dtype_(dtype), format_(format), oracle_(oracle) {}

  /// Activations, uniform in [low, high). If they have four dimensions, they have the format under test.
  Tensor input(const Shape& shape, double low = -1, double high = 1);
  /// The same values as a parameter or statistic: of dtype `parameter_dtype`, row-major.
  Tensor parameter(const Shape& shape, double low = -1, double high = 1);
  /// Activations with these values in row-major order: infinities, NaN, ties.
  Tensor given(const Shape& shape, const std::vector<float>& values);
  /// i64 numbers in [0, below).
  Tensor integers(const Shape& shape, uint32_t below);

  /// u8 zeros and ones.
  Tensor mask(const Shape& shape);

  Tensor& output(const Shape& shape);
  /// An output that is row-major in every format under test.
  Tensor& row_major_output(const Shape& shape);
  Tensor& parameter_output(const Shape& shape);
  Tensor& output_as(DType dtype, const Shape& shape);
  /// An argument that the kernel changes.
  Tensor& changed(Tensor initial);

  template <class... Parameters>
  void operator()(const Kernel<void(Parameters...)>& kernel, std::type_identity_t<Parameters>... arguments) const {
    kernel.on(target_)(arguments...);
  }

  /// The device that the target runs on.
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
  std::deque<Tensor> outputs_;  // references to elements stay valid when it grows
};

struct ParityOptions {
  bool bf16 = true;
  bool channels_last = true;
  bool exact = false;  // compares every bit with the reference
};

/// One row of the table: a kernel, a name for the case, and how to run it.
struct ParityCase {
  const KernelBase* kernel;
  std::string name;
  std::function<void(Run&)> body;
  ParityOptions options = {};
};
using ParityTable = std::vector<ParityCase>;

/// The largest values that pass: the largest difference over the largest value, and the sum of squared differences over
/// the sum of squared values.
struct Tolerance {
  double largest = 0, squared = 0;
};
/// Returns "" if `found` is close enough to `expected`, and otherwise the errors and the worst element. NaN equals only
/// NaN.
std::string difference(const Tensor& found, const Tensor& expected, const Tolerance& tolerance);

/// Runs the case on each of `targets` that the kernel has in this build, in every dtype and format that the case
/// allows. Compares with the reference in f64. Returns one line per difference: target, dtype, format, output, error
/// and worst element.
std::vector<std::string> parity_differences(const ParityCase& row,
                                            const std::vector<Target>& targets = {Target::reference, Target::cpu});

}  // namespace tern::test
