#include <cublasLt.h>

#include <array>
#include <mutex>
#include <optional>
#include <vector>

#include "tern/core/cuda/runtime.h"
#include "tern/core/error.h"
#include "tern/core/tensor.h"
#include "tern/kernels/cuda/operands.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/libraries.h"
#include "tern/kernels/matmul.h"
#include "tern/kernels/product_steps.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

/// y[m, n] = op(a)[m, k] · op(b)[k, n], row-major, for each of `matrices` matrices. Matrices of a and b are `a_step`
/// and `b_step` elements apart, those of y m·n elements.
struct Product {
  int64_t m, n, k;
  int64_t matrices = 1;
  int64_t a_step = 0, b_step = 0;
  bool transpose_a = false, transpose_b = false;

  friend bool operator==(const Product&, const Product&) = default;
};

constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // NVIDIA's advice for Hopper

void check_cublas(cublasStatus_t status, const char* operation) {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  fail({operation, ": cuBLASLt: ", cublasLtGetStatusString(status), " (", cublasLtGetStatusName(status), ")"});
}

/// What a product does with a vector of y's dtype, and nothing if it is undefined: adds it [n] to every row of y, or
/// stores in it [m] the sums of the rows of op(a).
struct Beside {
  enum class Role : uint8_t { bias, row_sums };
  Tensor vector = {};
  Role role = Role::bias;
};

/// The properties that the choice of an algorithm depends on.
struct Problem {
  Product product;
  DType read, written;
  bool tf32;
  cublasLtEpilogue_t epilogue;
  uint32_t a_alignment, b_alignment, y_alignment;  ///< in bytes

  friend bool operator==(const Problem&, const Problem&) = default;
};

/// One device's cuBLASLt, and the algorithms chosen for the device.
struct Blas {
  struct Entry {
    Problem problem;
    std::optional<cublasLtMatmulAlgo_t> algorithm;  ///< none if cuBLASLt has none
  };
  std::mutex mutex;
  cublasLtHandle_t handle = nullptr;
  std::vector<Entry> chosen;
};

/// Whether an epilogue may read or write a vector. cuBLASLt takes the alignment to expect from the vector's address
/// when it chooses an algorithm, and `Problem` has no such alignment. So every vector beside a product is as aligned as
/// the longest access of a thread, 16 bytes.
bool fits_epilogue(const Tensor& vector) {
  constexpr uint32_t kLongestAccess = 16;
  return alignment_of(vector, kLongestAccess) == kLongestAccess;
}

Blas& blas_of(Device device) {
  static auto& devices = *new std::array<Blas, kMaxCudaDevices>;  // never destroyed, like the devices' own objects
  return devices[static_cast<size_t>(device.index)];
}

cudaDataType_t data_type(DType dtype) { return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

/// A row-major matrix is the transpose of a column-major one, so cuBLAS computes yᵀ = op(b)ᵀ · op(a)ᵀ: b comes first.
struct Layouts {
  Layouts(const char* operation, const Problem& problem, const Tensor& vector) {
    const Product& p = problem.product;
    const auto compute = problem.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    check_cublas(cublasLtMatmulDescInit(&product, compute, CUDA_R_32F), operation);
    const auto describe = [&](cublasLtMatmulDescAttributes_t name, const auto& value) {
      check_cublas(cublasLtMatmulDescSetAttribute(&product, name, &value, sizeof value), operation);
    };
    const auto transpose = [&](cublasLtMatmulDescAttributes_t side, bool transposed) {
      describe(side, transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    };
    transpose(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b);
    transpose(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a);
    if (vector.defined()) {
      describe(CUBLASLT_MATMUL_DESC_EPILOGUE, problem.epilogue);
      describe(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(vector.raw_data()));
    }
    const auto layout = [&](cublasLtMatrixLayoutOpaque_t& matrix, DType dtype, int64_t rows, int64_t columns,
                            int64_t step) {
      check_cublas(cublasLtMatrixLayoutInit(&matrix, data_type(dtype), static_cast<uint64_t>(columns),
                                            static_cast<uint64_t>(rows), columns),
                   operation);
      const auto count = static_cast<int32_t>(p.matrices);
      check_cublas(cublasLtMatrixLayoutSetAttribute(&matrix, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                   operation);
      check_cublas(
          cublasLtMatrixLayoutSetAttribute(&matrix, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step),
          operation);
    };
    layout(first, problem.read, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.b_step);
    layout(second, problem.read, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.a_step);
    layout(result, problem.written, p.m, p.n, p.m * p.n);
  }

  cublasLtMatmulDescOpaque_t product;
  cublasLtMatrixLayoutOpaque_t first, second, result;
};

const std::optional<cublasLtMatmulAlgo_t>& choose(const char* operation, Blas& blas, const Problem& problem,
                                                  Layouts& layouts) {
  for (const auto& entry : blas.chosen)
    if (entry.problem == problem) return entry.algorithm;
  cublasLtMatmulPreferenceOpaque_t preference;
  check_cublas(cublasLtMatmulPreferenceInit(&preference), operation);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t name, const auto& value) {
    check_cublas(cublasLtMatmulPreferenceSetAttribute(&preference, name, &value, sizeof value), operation);
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kWorkspaceBytes));
  // If a sum is split, its parts must be added in f32. Sums that are not split are always allowed.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, problem.b_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, problem.a_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, problem.y_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, problem.y_alignment);
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(blas.handle, &layouts.product, &layouts.first, &layouts.second, &layouts.result,
                                     &layouts.result, &preference, 1, &found, &count);
  // cuBLASLt may also say INVALID_VALUE if no kernel has the epilogue. Without it, the same product shows a wrong call.
  const bool has_epilogue = problem.epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  if (status != CUBLAS_STATUS_NOT_SUPPORTED && (status != CUBLAS_STATUS_INVALID_VALUE || !has_epilogue))
    check_cublas(status, operation);
  blas.chosen.push_back({problem, {}});
  if (count == 1 && found.state == CUBLAS_STATUS_SUCCESS) blas.chosen.back().algorithm = found.algo;
  return blas.chosen.back().algorithm;
}

/// Runs a product on cuBLASLt, summed in f32. a and b have the same dtype, f32 (tf32 if the device's LibraryRules allow
/// it) or bf16. y has that dtype or f32. With a bias, k must be above 0. Returns false if cuBLASLt has no algorithm
/// that also does the work for the vector; then y is not computed. Throws an error that names `operation`.
bool multiply(const char* operation, const Product& product, const Tensor& a, const Tensor& b, const Tensor& y,
              const Beside& beside = {}) {
  check(a.dtype() == b.dtype() && (a.dtype() == DType::f32 || a.dtype() == DType::bf16), operation, ": elements are ",
        a.dtype(), " and ", b.dtype(), ", on CUDA expected f32 or bf16");
  const bool sums_rows = beside.vector.defined() && beside.role == Beside::Role::row_sums;
  if (product.m * product.n * product.matrices == 0) return !sums_rows;
  if (product.k == 0) {
    device_backend(y.device()).fill_zero(y.raw_data(), y.bytes());
    return !sums_rows;
  }
  constexpr uint32_t kMost = 256;
  const Problem problem{.product = product,
                        .read = a.dtype(),
                        .written = y.dtype(),
                        .tf32 = a.dtype() == DType::f32 && kernels::library_rules(y.device()).tf32,
                        .epilogue = !beside.vector.defined() ? CUBLASLT_EPILOGUE_DEFAULT
                                    : sums_rows              ? CUBLASLT_EPILOGUE_BGRADB
                                                             : CUBLASLT_EPILOGUE_BIAS,
                        .a_alignment = alignment_of(a, kMost),
                        .b_alignment = alignment_of(b, kMost),
                        .y_alignment = alignment_of(y, kMost)};
  Layouts layouts(operation, problem, beside.vector);
  const cudaStream_t stream = enter(y.device());
  Blas& blas = blas_of(y.device());
  const std::lock_guard lock(blas.mutex);
  if (blas.handle == nullptr) check_cublas(cublasLtCreate(&blas.handle), operation);
  const auto& algorithm = choose(operation, blas, problem, layouts);
  if (!algorithm && beside.vector.defined()) return false;
  check(algorithm.has_value(), operation, ": cuBLASLt has no algorithm for ", product.m, "x", product.k, " by ",
        product.k, "x", product.n, " of ", problem.read);
  const Tensor workspace = Tensor::empty({kWorkspaceBytes}, {.dtype = DType::u8, .device = y.device()});
  const float one = 1, zero = 0;
  check_cublas(cublasLtMatmul(blas.handle, &layouts.product, &one, b.raw_data(), &layouts.first, a.raw_data(),
                              &layouts.second, &zero, y.raw_data(), &layouts.result, y.raw_data(), &layouts.result,
                              &*algorithm, workspace.raw_data(), kWorkspaceBytes, stream),
               operation);
  if (waits_after_each()) check_cuda(cudaStreamSynchronize(stream), operation);
  return true;
}

/// Returns the weights in `dtype`, the dtype of the other factor.
Tensor weights_as(const Tensor& w, DType dtype) {
  if (w.dtype() == dtype) return w;
  Tensor result = Tensor::empty(w.shape(), {dtype, w.device()});
  kernels::convert.on(Target::cuda)(w, result);
  return result;
}

void matmul(const Tensor& a, const Tensor& b, const kernels::MatmulOptions& options, Tensor& y) {
  check(y.shape() == kernels::matmul_output_shape(a.shape(), b.shape(), options), "matmul: output of shape ", y.shape(),
        " for ", a.shape(), " and ", b.shape());
  const int64_t m = y.size(-2), n = y.size(-1), k = a.size(options.transpose_a ? -2 : -1);
  const int64_t matrices = m * n == 0 ? 0 : y.numel() / (m * n);
  multiply("matmul",
           {.m = m,
            .n = n,
            .k = k,
            .matrices = matrices,
            .a_step = m * k,
            .b_step = b.rank() == 2 ? 0 : k * n,
            .transpose_a = options.transpose_a,
            .transpose_b = options.transpose_b},
           a, b, y);
}

void linear(const Tensor& x, const Tensor& w, const Tensor& bias, bool relu, Tensor& y) {
  check(y.shape() == kernels::linear_output_shape(x.shape(), w.shape()), "linear: output of shape ", y.shape(), " for ",
        x.shape(), " and ", w.shape());
  // cuBLASLt can add a bias of y's dtype. Its relu is not used: its documentation does not say whether NaN passes it.
  const bool apart = relu || x.size(1) == 0 || (bias.defined() && (bias.dtype() != y.dtype() || !fits_epilogue(bias)));
  const Product product{.m = x.size(0), .n = w.size(0), .k = x.size(1), .transpose_b = true};
  const Tensor weights = weights_as(w, x.dtype());
  if (!apart && multiply("linear", product, x, weights, y, {.vector = bias})) return;
  multiply("linear", product, x, weights, y);
  add_bias("linear", bias, relu, y);
}

void linear_backward_data(const Tensor& dy, const Tensor& w, Tensor& dx) {
  multiply("linear_backward_data", {.m = dx.size(0), .n = dx.size(1), .k = w.size(0)}, dy, weights_as(w, dy.dtype()),
           dx);
}

void linear_backward_weights(const Tensor& dy, const Tensor& x, Tensor& dw, Tensor& db) {
  const char* operation = "linear_backward_weights";
  const Product product{.m = dw.size(0), .n = dw.size(1), .k = x.size(0), .transpose_a = true};
  const bool apart = db.defined() && !fits_epilogue(db);
  if (!apart && multiply(operation, product, dy, x, dw, {.vector = db, .role = Beside::Role::row_sums})) return;
  multiply(operation, product, dy, x, dw);
  channel_sums(operation, dy, db);
}

}  // namespace

void provide_matmul() {
  kernels::matmul.provide(Target::cuda, matmul);
  kernels::add_and_project.provide(Target::cuda, kernels::add_then_project<Target::cuda>);
  kernels::subtract_product.provide(Target::cuda, kernels::multiply_then_subtract<Target::cuda>);
  kernels::linear.provide(Target::cuda, linear);
  kernels::linear_backward_data.provide(Target::cuda, linear_backward_data);
  kernels::linear_backward_weights.provide(Target::cuda, linear_backward_weights);
}

}  // namespace tern::cuda
