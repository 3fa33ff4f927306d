#include "tern/kernels/layout.h"

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

void transpose(const Tensor& x, int first, int second, Tensor& y) {
  Shape expected = x.shape();
  std::swap(expected[first], expected[second]);
  check(y.shape() == expected, "transpose: output of shape ", y.shape(), " for ", x.shape(), " with dimensions ", first,
        " and ", second, " exchanged");
  move_elements("transpose", x, Position::transposed(x, first, second), y, Position(y), y.numel());
}

void extract(const Tensor& x, const kernels::Offsets& offsets, Tensor& y) {
  check_inside("extract", y.shape(), offsets, x.shape());
  move_elements("extract", x, Position::block(x, offsets, y.shape()), y, Position(y), y.numel());
}

void insert(const Tensor& x, const kernels::Offsets& offsets, Tensor& y) {
  check_inside("insert", x.shape(), offsets, y.shape());
  move_elements("insert", x, Position(x), y, Position::block(y, offsets, x.shape()), x.numel());
}

void fill(Tensor& x, double value) { x.fill(value); }

}  // namespace

void provide_layout() {
  kernels::convert.provide(Target::reference, convert);
  kernels::transpose.provide(Target::reference, transpose);
  kernels::extract.provide(Target::reference, extract);
  kernels::insert.provide(Target::reference, insert);
  kernels::fill.provide(Target::reference, fill);
}

}  // namespace tern::reference
