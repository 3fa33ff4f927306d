#include "tern/kernels/convolution.h"

#include "tern/core/visit.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/reference/indexing.h"

namespace tern::reference {
namespace {

/// The indices of one product of a convolution: y[n, o, i, j] += w[o, k, r, s] · x[n, c, h, v].
struct Product {
  int64_t n, o, i, j;
  int64_t k, r, s;
  int64_t c, h, v;
};

/// Calls `visit` for every product whose element of x is inside the input, not in the padding. A convolution is linear
/// in x and in w. So the gradients of x and of w are sums over the same products.
template <class Visit>
void for_each_product(const Shape& x, const Shape& w, const Shape& y, const kernels::ConvGeometry& geometry,
                      Visit visit) {
  const auto& [stride, padding, dilation, groups] = geometry;
  check(y == kernels::conv2d_output_shape(x, w, geometry), "conv2d: output of shape ", y, " for ", x, " and ", w);
  Product p;
  for (p.n = 0; p.n < y[0]; ++p.n)
    for (p.o = 0; p.o < y[1]; ++p.o)
      for (p.i = 0; p.i < y[2]; ++p.i)
        for (p.j = 0; p.j < y[3]; ++p.j)
          for (p.k = 0; p.k < w[1]; ++p.k)
            for (p.r = 0; p.r < w[2]; ++p.r)
              for (p.s = 0; p.s < w[3]; ++p.s) {
                const int64_t group = p.o / (y[1] / groups);
                p.c = group * w[1] + p.k;
                p.h = p.i * stride.h - padding.h + p.r * dilation.h;
                p.v = p.j * stride.w - padding.w + p.s * dilation.w;
                if (p.h >= 0 && p.h < x[2] && p.v >= 0 && p.v < x[3]) visit(p);
              }
}

void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const kernels::ConvGeometry& geometry, bool relu,
            Tensor& y) {
  visit_floating(x.dtype(), "conv2d", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const View4<T> in(x);
    const View4<Wide> weight(w);
    const Tensor sums = Tensor::zeros(y.shape(), {.dtype = dtype_of<Wide>, .format = y.format()});
    const View4<Wide> sum(sums);
    for_each_product(x.shape(), w.shape(), y.shape(), geometry, [&](const Product& p) {
      sum(p.n, p.o, p.i, p.j) += weight(p.o, p.k, p.r, p.s) * in(p.n, p.c, p.h, p.v);
    });
    for (int64_t n = 0; n < y.size(0); ++n)
      for (int64_t o = 0; o < y.size(1); ++o)
        for (int64_t i = 0; i < y.size(2); ++i)
          for (int64_t j = 0; j < y.size(3); ++j) {
            Wide& value = sum(n, o, i, j);
            if (bias.defined()) value += bias.data<Wide>()[o];
            if (relu && value < 0) value = 0;
          }
    y.copy_from(sums);
  });
}

void conv2d_backward_data_add(const Tensor& dy, const Tensor& w, const kernels::ConvGeometry& geometry, Tensor& dx) {
  visit_floating(dy.dtype(), "conv2d_backward_data", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const View4<T> d_out(dy);
    const View4<Wide> weight(w);
    const Tensor sums = dx.to(dtype_of<Wide>).clone();
    const View4<Wide> sum(sums);
    for_each_product(dx.shape(), w.shape(), dy.shape(), geometry, [&](const Product& p) {
      sum(p.n, p.c, p.h, p.v) += weight(p.o, p.k, p.r, p.s) * d_out(p.n, p.o, p.i, p.j);
    });
    dx.copy_from(sums);
  });
}

void conv2d_backward_data(const Tensor& dy, const Tensor& w, const kernels::ConvGeometry& geometry, Tensor& dx) {
  dx.fill(0);
  conv2d_backward_data_add(dy, w, geometry, dx);
}

void conv2d_backward_weights(const Tensor& dy, const Tensor& x, const kernels::ConvGeometry& geometry, Tensor& dw,
                             Tensor& db) {
  visit_floating(dy.dtype(), "conv2d_backward_weights", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const View4<T> d_out(dy), in(x);
    const View4<Wide> d_weight(dw);
    dw.fill(0);
    for_each_product(x.shape(), dw.shape(), dy.shape(), geometry, [&](const Product& p) {
      d_weight(p.o, p.k, p.r, p.s) += Wide(d_out(p.n, p.o, p.i, p.j)) * Wide(in(p.n, p.c, p.h, p.v));
    });
    if (!db.defined()) return;
    db.fill(0);
    for (int64_t n = 0; n < dy.size(0); ++n)
      for (int64_t o = 0; o < dy.size(1); ++o)
        for (int64_t i = 0; i < dy.size(2); ++i)
          for (int64_t j = 0; j < dy.size(3); ++j) db.data<Wide>()[o] += d_out(n, o, i, j);
  });
}

}  // namespace

void provide_convolution() {
  kernels::conv2d.provide(Target::reference, conv2d);
  kernels::conv2d_backward_data.provide(Target::reference, conv2d_backward_data);
  kernels::conv2d_backward_data_add.provide(Target::reference, conv2d_backward_data_add);
  kernels::conv2d_backward_weights.provide(Target::reference, conv2d_backward_weights);
}

}  // namespace tern::reference
