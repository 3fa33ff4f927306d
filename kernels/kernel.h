#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tern/core/error.h"
#include "tern/core/tensor.h"

namespace tern {

/// Where an implementation of an operation lives: plain loops (f32, f64 and bf16: oracle and documentation), fast CPU
/// code (f32 and bf16), CUDA.
enum class Target : uint8_t { reference, cpu, cuda };
inline constexpr int kTargets = 3;

std::string to_string(Target target);

/// What `Kernel` has apart from its signature: its name and which targets implement it.
class KernelBase {
 public:
  constexpr explicit KernelBase(const char* name) : name_(name) {}
  const char* name() const { return name_; }
  bool has(Target target) const;

 protected:
  using AnyFunction = void (*)();

  void set(Target target, AnyFunction function);
  /// The function for tensors like `tensor`: the device's own; on the CPU the reference where the fast code does not
  /// exist, and for f64. An error names the operation where there is none.
  AnyFunction select(const Tensor& tensor) const;
  AnyFunction at(Target target) const;

 private:
  const char* name_;
  std::array<AnyFunction, kTargets> functions_{};
};

/// The tensor whose device and dtype choose the implementation: the first argument, or the first of a list.
inline const Tensor& placement(const Tensor& tensor) { return tensor; }

/// One operation, found by the device of its first argument. Constant-initialised; the device folders list their
/// functions in one `provide.cpp` each, so a missing one is a link error. Calling is thread-safe.
template <class Signature>
class Kernel;

template <class First, class... Rest>
class Kernel<void(First, Rest...)> : public KernelBase {
 public:
  using Function = void (*)(First, Rest...);
  using KernelBase::KernelBase;

  void operator()(First first, Rest... rest) const {
    reinterpret_cast<Function>(select(placement(first)))(first, rest...);
  }
  /// The implementation on `target`, whatever the tensors' device; an error where there is none.
  Function on(Target target) const { return reinterpret_cast<Function>(at(target)); }
  void provide(Target target, Function function) { set(target, reinterpret_cast<AnyFunction>(function)); }
};

/// Every operation that any target provides, by name: for coverage tables.
std::vector<const KernelBase*> all_kernels();

}  // namespace tern

namespace tern::kernels {

/// An error that names `operation` and both tensors unless a and b share shape, dtype and format.
void check_alike(const char* operation, const Tensor& a, const Tensor& b);

}  // namespace tern::kernels
