#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "tern/core/error.h"
#include "tern/core/tensor.h"

namespace tern {

/// The kind of an implementation. `reference`: plain loops (f32, f64 and bf16), the oracle of the tests and the
/// documentation. `cpu`: fast CPU code (f32 and bf16). `cuda`: CUDA.
enum class Target : uint8_t { reference, cpu, cuda };
inline constexpr int kTargets = 3;

std::string to_string(Target target);

/// The part of `Kernel` that does not depend on its signature: its name and its implementations.
class KernelBase {
 public:
  constexpr explicit KernelBase(const char* name) : name_(name) {}
  const char* name() const { return name_; }
  bool has(Target target) const;

 protected:
  using AnyFunction = void (*)();

  void set(Target target, AnyFunction function);
  /// The function for tensors like `tensor`. For CUDA tensors, it is the CUDA function. For CPU tensors, it is the fast
  /// CPU function; if that does not exist or the dtype is f64, it is the reference. Throws an error that names the
  /// operation if there is no such function.
  AnyFunction select(const Tensor& tensor) const;
  AnyFunction at(Target target) const;

 private:
  const char* name_;
  std::array<AnyFunction, kTargets> functions_{};
};

/// The tensor whose device and dtype select the implementation: the first argument, or the first tensor of a list.
inline const Tensor& placement(const Tensor& tensor) { return tensor; }

/// One operation. The device and dtype of its first argument select the implementation. Constant-initialised. Each
/// family's file ends with `provide_FAMILY`, which provides its functions; the target's provide.cpp calls these. Calls
/// are thread-safe.
template <class Signature>
class Kernel;

template <class First, class... Rest>
class Kernel<void(First, Rest...)> : public KernelBase {
 public:
  using Function = void (*)(First, Rest...);
  using KernelBase::KernelBase;

  void operator()(First first, Rest... rest) const {
    reinterpret_cast<Function>(select(placement(first)))(first, rest...);
    mark_output<First>(first);
    (mark_output<Rest>(rest), ...);
  }
  /// Returns the implementation on `target`, for tensors on any device. Throws if there is none.
  Function on(Target target) const { return reinterpret_cast<Function>(at(target)); }
  void provide(Target target, Function function) { set(target, reinterpret_cast<AnyFunction>(function)); }

 private:
  /// Outputs are `Tensor&`; inputs are `const Tensor&`.
  template <class Argument>
  static void mark_output(const std::remove_reference_t<Argument>& argument) {
    if constexpr (std::is_same_v<Argument, Tensor&>) argument.mark_written();
  }
};

/// Every operation that at least one target provides, sorted by name. For coverage tables.
std::vector<const KernelBase*> all_kernels();

}  // namespace tern

namespace tern::kernels {

/// Throws an error that names `operation` and both tensors unless a and b have the same shape, dtype and format.
void check_alike(const char* operation, const Tensor& a, const Tensor& b);

}  // namespace tern::kernels
