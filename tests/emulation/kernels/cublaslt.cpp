#include <cublasLt.h>

#include <algorithm>

#include "tern/core/dtype.h"

// Plain loops. They refuse what cuBLASLt refuses: sizes that do not fit, and arrays with less alignment than promised.

namespace {

using Layout = cublasLtMatrixLayoutOpaque_t;

template <class T>
cublasStatus_t set(T& field, const void* value, size_t bytes) {
  if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

float load(const void* array, cudaDataType_t type, int64_t at) {
  return type == CUDA_R_16BF ? float(static_cast<const tern::BFloat16*>(array)[at])
                             : static_cast<const float*>(array)[at];
}
float rounded(float value, cudaDataType_t type) {
  return type == CUDA_R_16BF ? float(static_cast<tern::BFloat16>(value)) : value;
}
void store(void* array, cudaDataType_t type, int64_t at, float value) {
  if (type == CUDA_R_16BF)
    static_cast<tern::BFloat16*>(array)[at] = static_cast<tern::BFloat16>(value);
  else
    static_cast<float*>(array)[at] = value;
}

/// One factor, with its rows and columns after the transposition.
struct Factor {
  Factor(const void* elements, const Layout& layout, cublasOperation_t transpose)
      : array(elements),
        own(layout),
        transposed(transpose == CUBLAS_OP_T),
        rows(transposed ? layout.columns : layout.rows),
        columns(transposed ? layout.rows : layout.columns) {}
  float at(int64_t batch, int64_t row, int64_t column) const {
    if (transposed) std::swap(row, column);
    return load(array, own.type, batch * own.batch_step + column * own.step + row);
  }
  const void* array;
  Layout own;
  bool transposed;
  uint64_t rows, columns;
};

void multiply(const cublasLtMatmulDescOpaque_t& product, const Factor& a, const Factor& b, void* d, const Layout& to,
              cublasLtReductionScheme_t reduction) {
  constexpr int64_t kParts = 4;
  const auto k = static_cast<int64_t>(a.columns);
  const int64_t part = reduction == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE ? (k + kParts - 1) / kParts : k;
  for (int64_t batch = 0; batch < to.count; ++batch)
    for (int64_t column = 0; column < static_cast<int64_t>(to.columns); ++column)
      for (int64_t row = 0; row < static_cast<int64_t>(to.rows); ++row) {
        float total = 0;
        for (int64_t first = 0; first < k; first += part) {
          float sum = 0;
          for (int64_t i = first; i < std::min(first + part, k); ++i)
            sum += a.at(batch, row, i) * b.at(batch, i, column);
          total = part == k ? sum : rounded(total + rounded(sum, to.type), to.type);
        }
        if (product.epilogue == CUBLASLT_EPILOGUE_BIAS) total += load(product.bias, to.type, row);
        store(d, to.type, batch * to.batch_step + column * to.step + row, total);
      }
  if (product.epilogue != CUBLASLT_EPILOGUE_BGRADB) return;
  for (int64_t column = 0; column < static_cast<int64_t>(to.columns); ++column) {
    float sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += b.at(0, i, column);
    store(product.bias, to.type, column, sum);
  }
}

bool is_aligned(const void* array, uint32_t bytes) { return reinterpret_cast<uintptr_t>(array) % bytes == 0; }
uint32_t alignment_found(const void* array) {
  uint32_t bytes = 16;
  while (!is_aligned(array, bytes)) bytes /= 2;
  return bytes;
}

}  // namespace

const char* cublasLtGetStatusName(cublasStatus_t) { return "emulated"; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "emulated error"; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static int one = 0;
  *handle = &one;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDescOpaque_t* product, cublasComputeType_t, cudaDataType_t) {
  *product = {CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDescOpaque_t* product, cublasLtMatmulDescAttributes_t name,
                                              const void* value, size_t bytes) {
  switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(product->transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(product->transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(product->epilogue, value, bytes);
    default: return set(product->bias, value, bytes);
  }
}

cublasStatus_t cublasLtMatrixLayoutInit(Layout* layout, cudaDataType_t type, uint64_t rows, uint64_t columns,
                                        int64_t step) {
  *layout = {type, rows, columns, step, 1, 0};
  return step < static_cast<int64_t>(rows) ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(Layout* layout, cublasLtMatrixLayoutAttribute_t name, const void* value,
                                                size_t bytes) {
  return name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? set(layout->count, value, bytes)
                                                    : set(layout->batch_step, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreferenceOpaque_t* preference) {
  *preference = {0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreferenceOpaque_t* preference,
                                                    cublasLtMatmulPreferenceAttributes_t name, const void* value,
                                                    size_t bytes) {
  switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return set(preference->workspace_bytes, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return set(preference->reduction_schemes, value, bytes);
    default: return set(preference->alignment[name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, bytes);
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDescOpaque_t* product, Layout*, Layout*,
                                              Layout*, Layout*, cublasLtMatmulPreferenceOpaque_t* preference, int,
                                              cublasLtMatmulHeuristicResult_t* found, int* count) {
  *found = {.algo = {}, .state = CUBLAS_STATUS_NOT_SUPPORTED};
  *count = 1;
  if (product->epilogue != CUBLASLT_EPILOGUE_DEFAULT && emulation::lacks("epilogues")) return CUBLAS_STATUS_SUCCESS;
  found->state = CUBLAS_STATUS_SUCCESS;
  cublasLtMatmulAlgo_t& algorithm = found->algo;
  algorithm.reduction = (preference->reduction_schemes & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE) != 0
                            ? CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE
                            : CUBLASLT_REDUCTION_SCHEME_NONE;
  std::ranges::copy(preference->alignment, algorithm.alignment);
  algorithm.bias_alignment = alignment_found(product->bias);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDescOpaque_t* product, const void*, const void* a,
                              Layout* a_layout, const void* b, Layout* b_layout, const void*, const void*, Layout*,
                              void* d, Layout* to, const cublasLtMatmulAlgo_t* algorithm, void*, size_t,
                              cudaStream_t stream) {
  const Factor first(a, *a_layout, product->transpose_a), second(b, *b_layout, product->transpose_b);
  if (first.columns != second.rows || first.rows != to->rows || second.columns != to->columns ||
      a_layout->count != to->count || b_layout->count != to->count)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_aligned(a, algorithm->alignment[0]) || !is_aligned(b, algorithm->alignment[1]) ||
      !is_aligned(d, algorithm->alignment[3]) || !is_aligned(product->bias, algorithm->bias_alignment))
    return CUBLAS_STATUS_INVALID_VALUE;
  emulation::issue(stream, [=, product = *product, to = *to, reduction = algorithm->reduction] {
    multiply(product, first, second, d, to, reduction);
  });
  return CUBLAS_STATUS_SUCCESS;
}
