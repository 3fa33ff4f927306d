#include "tern/kernels/libraries.h"

#include <cuda_runtime.h>

#include "tern/kernels/cuda/convolution.h"
#include "tern/kernels/cuda/matmul.h"

// What the vendor's libraries do on a device is done by the reference kernels here: there device memory is the CPU's.

namespace tern {

std::vector<std::pair<std::string, std::string>> kernels::cuda_libraries() { return {{"cuda", "emulated"}}; }

namespace cuda {
namespace {

/// `x` on the CPU.
Tensor here(const Tensor& x) { return x.defined() ? x.to(Device{}) : x; }

/// As the reference reads weights.
Tensor plain(const Tensor& w) { return here(w).to(MemoryFormat::row_major).to(parameter_dtype(w.dtype())); }

}  // namespace

void matmul(const Tensor& a, const Tensor& b, const kernels::MatmulOptions& options, Tensor& y) {
  emulation::issue([=] {
    Tensor result = here(y);
    kernels::matmul.on(Target::reference)(here(a), here(b), options, result);
    y.copy_from(result);
  });
}

void linear(const Tensor& x, const Tensor& w, const Tensor& bias, bool relu, Tensor& y) {
  emulation::issue([=] {
    Tensor result = here(y);
    kernels::linear.on(Target::reference)(here(x), here(w), here(bias), relu, result);
    y.copy_from(result);
  });
}

void linear_backward_data(const Tensor& dy, const Tensor& w, Tensor& dx) {
  emulation::issue([=] {
    Tensor result = here(dx);
    kernels::linear_backward_data.on(Target::reference)(here(dy), here(w), result);
    dx.copy_from(result);
  });
}

void linear_backward_weights(const Tensor& dy, const Tensor& x, Tensor& dw, Tensor& db) {
  emulation::issue([=] {
    Tensor weights = here(dw), bias = here(db);
    kernels::linear_backward_weights.on(Target::reference)(here(dy), here(x), weights, bias);
    dw.copy_from(weights);
    if (db.defined()) db.copy_from(bias);
  });
}

void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const kernels::ConvGeometry& geometry, bool relu,
            Tensor& y) {
  emulation::issue([=] {
    Tensor result = here(y);
    kernels::conv2d.on(Target::reference)(here(x), plain(w), here(bias), geometry, relu, result);
    y.copy_from(result);
  });
}

void conv2d_backward_data(const Tensor& dy, const Tensor& w, const kernels::ConvGeometry& geometry, Tensor& dx) {
  emulation::issue([=] {
    Tensor result = here(dx);
    kernels::conv2d_backward_data.on(Target::reference)(here(dy), plain(w), geometry, result);
    dx.copy_from(result);
  });
}

void conv2d_backward_weights(const Tensor& dy, const Tensor& x, const kernels::ConvGeometry& geometry, Tensor& dw,
                             Tensor& db) {
  emulation::issue([=] {
    Tensor weights = here(dw), bias = here(db);
    kernels::conv2d_backward_weights.on(Target::reference)(here(dy), here(x), geometry, weights, bias);
    dw.copy_from(weights);
    if (db.defined()) db.copy_from(bias);
  });
}

}  // namespace cuda
}  // namespace tern
