#include "tern/kernels/reduction.h"

#include <vector>

#include "tern/core/visit.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/reference/indexing.h"

namespace tern::reference {
namespace {

void check_extents(const char* operation, const Tensor& large, const Tensor& small) {
  check(large.rank() == small.rank() && broadcast(large.shape(), small.shape(), operation) == large.shape(), operation,
        ": shape ", small.shape(), " does not repeat to ", large.shape());
  check(large.dtype() == small.dtype(), operation, ": elements are ", large.dtype(), " and ", small.dtype(),
        ", expected one dtype");
}

void sum(const Tensor& x, double scale, Tensor& y) {
  check_extents("sum", x, y);
  const Position in_x(x);
  const auto in_y = Position::broadcast(y, x.shape());
  visit_floating(x.dtype(), "sum", [&]<class T>(T) {
    const T* in = x.data<T>();
    T* out = y.data<T>();
    std::vector<wider_t<T>> sums(static_cast<size_t>(y.numel()));
    for (int64_t i = 0; i < x.numel(); ++i) sums[in_y(i)] += in[in_x(i)];
    for (int64_t i = 0; i < y.numel(); ++i) out[i] = static_cast<T>(static_cast<wider_t<T>>(scale) * sums[i]);
  });
}

void broadcast_to(const Tensor& x, double scale, Tensor& y) {
  check_extents("broadcast_to", y, x);
  const auto in_x = Position::broadcast(x, y.shape());
  const Position in_y(y);
  visit_floating(x.dtype(), "broadcast_to", [&]<class T>(T) {
    const T* in = x.data<T>();
    T* out = y.data<T>();
    for (int64_t i = 0; i < y.numel(); ++i) out[in_y(i)] = static_cast<T>(static_cast<wider_t<T>>(scale) * in[in_x(i)]);
  });
}

}  // namespace

void provide_reduction() {
  kernels::sum.provide(Target::reference, sum);
  kernels::broadcast_to.provide(Target::reference, broadcast_to);
}

}  // namespace tern::reference
