#include "tern/kernels/reduction.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "tern/core/visit.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/reference/indexing.h"
#include "tern/kernels/relu_steps.h"

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
    std::vector<double> sums(static_cast<size_t>(y.numel()));
    for (int64_t i = 0; i < x.numel(); ++i) sums[in_y(i)] += static_cast<wider_t<T>>(in[in_x(i)]);
    for (int64_t i = 0; i < y.numel(); ++i) out[i] = static_cast<T>(static_cast<wider_t<T>>(scale * sums[i]));
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

/// y[r] = f(row), with Y the element type of y, or void if it is that of x. The row is a span.
template <class Y, class Function>
void reduce_rows(const char* operation, const Tensor& x, Tensor& y, Function f) {
  kernels::check_rows(operation, x, y, y.dtype() == DType::i64 ? DType::i64 : x.dtype());
  visit_floating(x.dtype(), operation, [&]<class T>(T) {
    using Result = std::conditional_t<std::is_void_v<Y>, T, Y>;
    const auto columns = static_cast<size_t>(x.size(1));
    for (int64_t r = 0; r < x.size(0); ++r) {
      std::vector<wider_t<T>> row(columns);
      for (size_t c = 0; c < columns; ++c) row[c] = x.data<T>()[static_cast<size_t>(r) * columns + c];
      y.data<Result>()[r] = static_cast<Result>(f(row));
    }
  });
}

/// Whether `value` takes the place of `best`. The first NaN stays.
template <class T>
bool exceeds(T value, T best) {
  return value > best || (value != value && best == best);
}

void row_max(const Tensor& x, Tensor& y) {
  reduce_rows<void>("row_max", x, y, [](const auto& row) {
    auto best = row[0];
    for (const auto value : row)
      if (exceeds(value, best)) best = value;
    return best;
  });
}

void row_min(const Tensor& x, Tensor& y) {
  reduce_rows<void>("row_min", x, y, [](const auto& row) {
    auto best = row[0];
    for (const auto value : row)
      if (exceeds(-value, -best)) best = value;
    return best;
  });
}

void row_argmax(const Tensor& x, Tensor& y) {
  reduce_rows<int64_t>("row_argmax", x, y, [](const auto& row) {
    size_t best = 0;
    for (size_t c = 0; c < row.size(); ++c)
      if (exceeds(row[c], row[best])) best = c;
    return best;
  });
}

void row_logsumexp(const Tensor& x, Tensor& y) {
  reduce_rows<void>("row_logsumexp", x, y, [](const auto& row) {
    const auto largest = *std::ranges::max_element(row);
    const auto shift = std::isfinite(largest) ? largest : 0;
    auto sum = shift - shift;
    for (const auto value : row) sum += std::exp(value - shift);
    return std::log(sum) + shift;
  });
}

}  // namespace

void provide_reduction() {
  kernels::sum.provide(Target::reference, sum);
  kernels::relu_backward_sums.provide(Target::reference, kernels::mask_then_sum<Target::reference>);
  kernels::broadcast_to.provide(Target::reference, broadcast_to);
  kernels::row_max.provide(Target::reference, row_max);
  kernels::row_min.provide(Target::reference, row_min);
  kernels::row_argmax.provide(Target::reference, row_argmax);
  kernels::row_logsumexp.provide(Target::reference, row_logsumexp);
}

}  // namespace tern::reference
