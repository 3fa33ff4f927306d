#include "tests/support/parity.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tern/core/random.h"

namespace tern::test {
namespace {

// bf16 rounds each operand and each result to 8 bits. The f32 tolerance allows sums of a few thousand products in any
// order.
Tolerance tolerance_of(DType dtype) {
  return dtype == DType::bf16 ? Tolerance{0x1p-7, 0x1p-16} : Tolerance{1e-5, 1e-11};
}

Tensor random(const Shape& shape, double low, double high, uint32_t tensor) {
  const RandomStream stream({.seed = 1, .purpose = Purpose::test, .tensor = tensor});
  Tensor result = Tensor::empty(shape);
  const auto values = result.span<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(low + (high - low) * stream.uniform(i));
  return result;
}

Tensor unwritten(const Shape& shape, const TensorOptions& options) {
  return Tensor::full(shape, is_floating(options.dtype) ? std::numeric_limits<double>::quiet_NaN() : 255, options);
}

}  // namespace

std::string difference(const Tensor& found, const Tensor& expected, const Tolerance& tolerance) {
  if (found.shape() != expected.shape()) return join({"shape ", found.shape(), ", expected ", expected.shape()});
  const auto a = found.to_vector<double>(), b = expected.to_vector<double>();
  double largest_error = 0, largest = 0, squared_error = 0, squared = 0;
  size_t worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    const bool comparable = std::isfinite(a[i]) && std::isfinite(b[i]);
    const double error = same ? 0 : comparable ? std::abs(a[i] - b[i]) : std::numeric_limits<double>::infinity();
    if (error > largest_error) {
      worst = i;
      largest_error = error;
    }
    squared_error += error * error;
    if (std::isfinite(b[i])) {
      largest = std::max(largest, std::abs(b[i]));
      squared += b[i] * b[i];
    }
  }
  if (largest_error <= tolerance.largest * largest && squared_error <= tolerance.squared * squared) return {};
  return join({"shape ", found.shape(), ", element ", worst, " is ", a[worst], ", expected ", b[worst],
               "; largest error over largest value ", largest_error / largest, " (allowed ", tolerance.largest,
               "), squared ", squared_error / squared, " (allowed ", tolerance.squared, ")"});
}

MemoryFormat Run::format_of(const Shape& shape) const { return shape.rank() == 4 ? format_ : MemoryFormat::row_major; }

Device Run::device() const { return {target_ == Target::cuda ? DeviceType::cuda : DeviceType::cpu, 0}; }

Tensor Run::activations(const Tensor& values) const {
  const Tensor rounded = values.to(dtype_);
  return (oracle_ ? rounded.to(DType::f64) : rounded).to(format_of(values.shape())).to(device());
}

Tensor Run::input(const Shape& shape, double low, double high) {
  return activations(random(shape, low, high, draws_++));
}

Tensor Run::given(const Shape& shape, const std::vector<float>& values) {
  return activations(Tensor::from(shape, values));
}

Tensor Run::parameter(const Shape& shape, double low, double high) {
  return random(shape, low, high, draws_++).to(oracle_ ? DType::f64 : parameter_dtype(dtype_)).to(device());
}

Tensor Run::integers(const Shape& shape, uint32_t below) {
  const RandomStream stream({.seed = 1, .purpose = Purpose::test, .tensor = draws_++});
  Tensor result = Tensor::empty(shape, {.dtype = DType::i64});
  const auto values = result.span<int64_t>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = stream.below(i, below);
  return result.to(device());
}

Tensor Run::mask(const Shape& shape) { return integers(shape, 2).to(DType::u8); }

Tensor& Run::output(const Shape& shape) { return output_as(oracle_ ? DType::f64 : dtype_, shape); }

Tensor& Run::row_major_output(const Shape& shape) {
  return changed(unwritten(shape, {.dtype = oracle_ ? DType::f64 : dtype_}).to(device()));
}

Tensor& Run::parameter_output(const Shape& shape) {
  return changed(unwritten(shape, {.dtype = oracle_ ? DType::f64 : parameter_dtype(dtype_)}).to(device()));
}

Tensor& Run::output_as(DType dtype, const Shape& shape) {
  return changed(unwritten(shape, {.dtype = dtype, .format = format_of(shape)}).to(device()));
}

Tensor& Run::changed(Tensor initial) { return outputs_.emplace_back(std::move(initial)); }

std::vector<std::string> parity_differences(const ParityCase& row, const std::vector<Target>& targets) {
  std::vector<std::string> found;
  for (DType dtype : {DType::f32, DType::bf16})
    for (MemoryFormat format : {MemoryFormat::row_major, MemoryFormat::channels_last}) {
      if ((dtype == DType::bf16 && !row.options.bf16) ||
          (format == MemoryFormat::channels_last && !row.options.channels_last))
        continue;
      Run oracle(Target::reference, dtype, format, true);
      row.body(oracle);
      for (Target target : targets) {
        if (!row.kernel->has(target)) continue;
        Run run(target, dtype, format, false);
        row.body(run);
        if (run.outputs().size() != oracle.outputs().size())
          found.push_back(join({row.kernel->name(), " on ", target, ", ", row.name, ": ", run.outputs().size(),
                                " outputs, expected ", oracle.outputs().size()}));
        for (size_t i = 0; i < std::min(run.outputs().size(), oracle.outputs().size()); ++i) {
          const Tensor& output = run.outputs()[i];
          const bool exact = row.options.exact || !is_floating(output.dtype());
          const auto tolerance = exact ? Tolerance{0, 0} : tolerance_of(dtype);
          const auto line = difference(output, oracle.outputs()[i], tolerance);
          if (!line.empty())
            found.push_back(join({row.kernel->name(), " on ", target, ", ", row.name, ", ", dtype, ", ", format,
                                  ", output ", i, ": ", line}));
        }
      }
    }
  return found;
}

}  // namespace tern::test
