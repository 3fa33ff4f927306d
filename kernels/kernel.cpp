#include "tern/kernels/kernel.h"

#include <algorithm>
#include <mutex>

#include "tern/core/error.h"
#include "tern/kernels/operation_clock.h"
#include "tern/kernels/provide.h"

namespace tern {
namespace {

std::vector<const KernelBase*>& provided() {
  static std::vector<const KernelBase*> kernels;
  return kernels;
}

void provide_all() {
  static std::once_flag once;
  std::call_once(once, [] {
    provide_reference_kernels();
    provide_cpu_kernels();
    provide_cuda_kernels();
  });
}

}  // namespace

std::string to_string(Target target) {
  switch (target) {
    case Target::reference: return "reference";
    case Target::cpu: return "cpu";
    case Target::cuda: return "cuda";
  }
  return "?";
}

void KernelBase::set(Target target, AnyFunction function) {
  functions_[static_cast<size_t>(target)] = function;
  if (std::ranges::find(provided(), this) == provided().end()) provided().push_back(this);
}

bool KernelBase::has(Target target) const {
  provide_all();
  return functions_[static_cast<size_t>(target)] != nullptr;
}

KernelBase::AnyFunction KernelBase::at(Target target) const {
  check(has(target), name_, ": no implementation on ", target, " in this build");
  return functions_[static_cast<size_t>(target)];
}

KernelBase::AnyFunction KernelBase::select(const Tensor& tensor) const {
  check(tensor.defined(), name_, ": the first argument is undefined, expected a tensor");
  set_last_operation(name_);
  if (OperationClock* clock = operation_clock()) clock->begin(name_);
  if (tensor.device().type == DeviceType::cuda) return at(Target::cuda);
  const bool fast = tensor.dtype() != DType::f64 && has(Target::cpu);
  return at(fast ? Target::cpu : Target::reference);
}

std::vector<const KernelBase*> all_kernels() {
  provide_all();
  auto kernels = provided();
  std::ranges::sort(kernels, [](auto* a, auto* b) { return std::string_view(a->name()) < b->name(); });
  return kernels;
}

}  // namespace tern

namespace tern::kernels {

void check_alike(const char* operation, const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape() && a.dtype() == b.dtype() && a.format() == b.format(), operation, ": ", a.dtype(), " ",
        a.shape(), " (", a.format(), ") meets ", b.dtype(), " ", b.shape(), " (", b.format(),
        "), expected one shape, dtype and format");
}

}  // namespace tern::kernels
