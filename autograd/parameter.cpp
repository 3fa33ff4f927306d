#include "tern/autograd/parameter.h"

#include <utility>
#include <vector>

#include "tern/autograd/functional.h"
#include "tern/autograd/operation.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/recording.h"

namespace tern {

void Parameter::set_value(Tensor value) {
  const bool on_gpu = value.defined() && value.device().type != DeviceType::cpu;
  value_ = on_gpu && value.rank() == 4 ? in_format(std::move(value), MemoryFormat::channels_last) : std::move(value);
  lead_.reset();
  if (copy_.defined() && copy_.shape() != value_.shape()) copy_ = {};
  zero_gradient();
}

Tensor Parameter::copy_for(const Tensor& x) {
  if (!x.defined() || x.device().type == DeviceType::cpu) return {};
  TensorOptions wanted = x.options();
  if (value_.rank() != 4) wanted.format = MemoryFormat::row_major;
  if (wanted.dtype == value_.dtype() && wanted.format == value_.format()) return {};
  if (copied_as_ && (copied_as_->device != wanted.device || copied_as_->dtype != wanted.dtype)) {
    copied_as_.reset();
    copy_ = {};
  }
  if (!copied_as_) copied_as_ = wanted;
  const Tensor copy = current_copy();
  const bool fits = copy.defined() && copy.dtype() == wanted.dtype && copy.format() == wanted.format;
  return fits ? copy : Tensor();
}

Tensor Parameter::current_copy() const { return lead_ == value_.version() - copy_.version() ? copy_ : Tensor(); }

void copy_parameters(std::span<Parameter* const> parameters) {
  if (is_recording()) return;
  std::vector<kernels::Conversion> conversions;
  for (Parameter* parameter : parameters) {
    const Tensor& value = parameter->value_;
    const auto& options = parameter->copied_as_;
    if (!options || !value.defined() || value.device() != options->device) continue;
    if (parameter->current_copy().defined()) continue;
    Tensor& copy = parameter->copy_;
    if (!copy.defined()) copy = Tensor::empty(value.shape(), *options);
    conversions.push_back({value, copy});
    copy.mark_written();
    parameter->lead_ = value.version() - copy.version();
  }
  if (!conversions.empty()) kernels::convert_all(conversions);
}

}  // namespace tern
