#include "tern/kernels/layout.h"

#include <vector>

#include "tern/core/visit.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/reference/indexing.h"

namespace tern::reference {
namespace {

/// For each i < `count`, copies the element at offset in_x(i) of x to offset in_y(i) of y.
void move_elements(const char* operation, const Tensor& x, const Position& in_x, const Tensor& y, const Position& in_y,
                   int64_t count) {
  check(x.dtype() == y.dtype(), operation, ": elements are ", x.dtype(), " and ", y.dtype(), ", expected one dtype");
  visit_dtype(x.dtype(), [&]<class T>(T) {
    for (int64_t i = 0; i < count; ++i) y.data<T>()[in_y(i)] = x.data<T>()[in_x(i)];
  });
}

void check_inside(const char* operation, const Shape& block, const kernels::Offsets& offsets, const Shape& whole) {
  check(block.rank() == whole.rank(), operation, ": a block of shape ", block, " in a tensor of shape ", whole);
  for (int d = 0; d < block.rank(); ++d)
    check(offsets[d] >= 0 && offsets[d] + block[d] <= whole[d], operation, ": a block of shape ", block, " at offset ",
          offsets[d], " of dimension ", d, " leaves the tensor of shape ", whole);
}

void convert(const Tensor& x, Tensor& y) { y.copy_from(x); }

void convert_all(std::span<const kernels::Conversion> conversions) {
  for (auto [x, y] : conversions) convert(x, y);
}

void permute(const Tensor& x, const kernels::Order& order, Tensor& y) {
  Shape expected = x.shape();
  for (int d = 0; d < x.rank(); ++d) expected[d] = x.size(order[d]);
  check(y.shape() == expected, "permute: output of shape ", y.shape(), " for ", x.shape(), ", expected ", expected);
  move_elements("permute", x, Position::permuted(x, order, expected), y, Position(y), y.numel());
}

void extract(const Tensor& x, const kernels::Offsets& offsets, Tensor& y) {
  check_inside("extract", y.shape(), offsets, x.shape());
  move_elements("extract", x, Position::block(x, offsets, y.shape()), y, Position(y), y.numel());
}

void insert(const Tensor& x, const kernels::Offsets& offsets, Tensor& y) {
  check_inside("insert", x.shape(), offsets, y.shape());
  move_elements("insert", x, Position(x), y, Position::block(y, offsets, x.shape()), x.numel());
}

/// Calls visit(of_whole, of_padded) for each element of the padded tensor: its offset there, and that of its source.
template <class Visit>
void for_each_reflected(const Tensor& whole, const Tensor& padded, const kernels::Border& border, Visit visit) {
  const int64_t h = whole.size(-2), w = whole.size(-1), padded_h = padded.size(-2), padded_w = padded.size(-1);
  check(padded_h == h + border.top + border.bottom && padded_w == w + border.left + border.right,
        "reflection_pad: ", whole.shape(), " and ", padded.shape(), ", expected shapes that the border explains");
  for (int64_t plane = 0; plane < whole.numel() / (h * w); ++plane)
    for (int64_t i = 0; i < padded_h; ++i)
      for (int64_t j = 0; j < padded_w; ++j)
        visit((plane * h + mirrored(i - border.top, h)) * w + mirrored(j - border.left, w),
              (plane * padded_h + i) * padded_w + j);
}

void reflection_pad(const Tensor& x, const kernels::Border& border, Tensor& y) {
  visit_floating(x.dtype(), "reflection_pad", [&]<class T>(T) {
    for_each_reflected(x, y, border, [&](int64_t from, int64_t to) { y.data<T>()[to] = x.data<T>()[from]; });
  });
}

void reflection_pad_backward(const Tensor& dy, const kernels::Border& border, Tensor& dx) {
  visit_floating(dy.dtype(), "reflection_pad_backward", [&]<class T>(T) {
    std::vector<wider_t<T>> sums(static_cast<size_t>(dx.numel()));
    for_each_reflected(dx, dy, border, [&](int64_t to, int64_t from) { sums[to] += dy.data<T>()[from]; });
    for (int64_t i = 0; i < dx.numel(); ++i) dx.data<T>()[i] = static_cast<T>(sums[i]);
  });
}

void fill(Tensor& x, double value) { x.fill(value); }

}  // namespace

void provide_layout() {
  kernels::convert.provide(Target::reference, convert);
  kernels::convert_all.provide(Target::reference, convert_all);
  kernels::permute.provide(Target::reference, permute);
  kernels::extract.provide(Target::reference, extract);
  kernels::insert.provide(Target::reference, insert);
  kernels::reflection_pad.provide(Target::reference, reflection_pad);
  kernels::reflection_pad_backward.provide(Target::reference, reflection_pad_backward);
  kernels::fill.provide(Target::reference, fill);
}

}  // namespace tern::reference
