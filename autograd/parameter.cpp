#include "tern/autograd/parameter.h"

#include <utility>
#include <vector>

#include "tern/autograd/functional.h"
#include "tern/kernels/layout.h"

namespace tern {

void Parameter::set_value(Tensor value) {
  const bool on_gpu = value.defined() && value.device().type != DeviceType::cpu;
  value_ = on_gpu && value.rank() == 4 ? in_format(std::move(value), MemoryFormat::channels_last) : std::move(value);
  copy_ = {};
  zero_gradient();
}

Tensor Parameter::take_copy(const Tensor& x) {
  if (!x.defined() || x.device().type == DeviceType::cpu) return {};
  TensorOptions wanted = x.options();
  if (value_.rank() != 4) wanted.format = MemoryFormat::row_major;
  if (wanted.dtype == value_.dtype() && wanted.format == value_.format()) return {};
  copied_as_ = wanted;
  const Tensor copy = std::exchange(copy_, {});
  const bool fits = copy.defined() && copied_version_ == value_.version() && copy.dtype() == wanted.dtype &&
                    copy.format() == wanted.format;
  return fits ? copy : Tensor();
}

void copy_parameters(std::span<Parameter* const> parameters) {
  std::vector<kernels::Conversion> conversions;
  for (Parameter* parameter : parameters) {
    const bool unused = std::exchange(parameter->copy_, {}).defined();
    const auto options = std::exchange(parameter->copied_as_, {});
    if (!options || unused) continue;
    const Tensor& value = parameter->value_;
    parameter->copy_ = Tensor::empty(value.shape(), *options);
    parameter->copied_version_ = value.version();
    conversions.push_back({value, parameter->copy_});
  }
  if (!conversions.empty()) kernels::convert_all(conversions);
}

}  // namespace tern
