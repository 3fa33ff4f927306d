#pragma once

#include <span>
#include <vector>

#include "tern/autograd/variable.h"
#include "tern/kernels/convolution.h"
#include "tern/kernels/dropout.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/matmul.h"
#include "tern/kernels/normalization.h"
#include "tern/kernels/pooling.h"

// Elementwise arithmetic. Operands have one dtype and broadcast as in PyTorch. The result has the format of the operand
// with its shape (a's if both have it).
namespace tern {

Variable add(const Variable& a, const Variable& b);
Variable subtract(const Variable& a, const Variable& b);
Variable multiply(const Variable& a, const Variable& b);
Variable divide(const Variable& a, const Variable& b);
/// max(a + b, 0) of equal shapes: the end of a residual block, in one pass.
Variable add_relu(const Variable& a, const Variable& b);
/// factor·x
Variable scale(const Variable& x, double factor);

inline Variable operator+(const Variable& a, const Variable& b) { return add(a, b); }
inline Variable operator-(const Variable& a, const Variable& b) { return subtract(a, b); }
inline Variable operator*(const Variable& a, const Variable& b) { return multiply(a, b); }
inline Variable operator/(const Variable& a, const Variable& b) { return divide(a, b); }

using kernels::MatmulOptions;

/// y[..., m, n] = op(a)[..., m, k] · op(b)[..., k, n]. op exchanges the last two dimensions if `options` say so. Ranks
/// are 2 to 4. The leading dimensions are equal, or b has rank 2 and is the factor of every matrix of a.
Variable matmul(const Variable& a, const Variable& b, const MatmulOptions& options = {});

/// What an operation applies to its result in the same pass.
struct Fused {
  bool relu = false;
};

/// y[N, out] = x[N, in] · w[out, in]ᵀ + bias[out]; `bias` may be undefined.
Variable linear(const Variable& x, const Variable& w, const Variable& bias, const Fused& fused = {});

using kernels::ConvGeometry;
using kernels::Extent2;

/// The cross-correlation of x [N, C, H, W] with w [O, C/groups, kh, kw], plus bias [O], which may be undefined. The
/// result is [N, O, H', W'] in x's format and dtype.
Variable conv2d(const Variable& x, const Variable& w, const Variable& bias, const ConvGeometry& geometry = {},
                const Fused& fused = {});

}  // namespace tern

// Elementwise functions of one value. Outputs have its shape, dtype and format.
namespace tern {

/// max(x, 0)
Variable relu(const Variable& x);
/// x if x > 0, else slope·x
Variable leaky_relu(const Variable& x, double slope = 0.01);
Variable sigmoid(const Variable& x);
Variable tanh(const Variable& x);

using kernels::GeluForm;

/// x · Φ(x), as PyTorch's gelu. Φ is the distribution function of N(0, 1).
Variable gelu(const Variable& x, GeluForm form = GeluForm::exact);

/// The gradient through a relu that gave y, in y's format: 0 if y <= 0, else dy, also if y is NaN. Overwrites dy if
/// nobody else holds it.
Tensor relu_gradient(const Tensor& y, Tensor dy);

/// exp(x) / Σ exp(x) over the last dimension. The result is row-major.
Variable softmax(const Variable& x);
/// log(softmax(x))
Variable log_softmax(const Variable& x);

using kernels::BatchNormOptions;
using kernels::LocalResponseNormOptions;

/// The parameters and the running statistics of a batch normalisation, each [C].
struct BatchNormState {
  Variable gamma, beta;
  Tensor running_mean, running_variance;
};

/// Batch normalisation (Ioffe and Szegedy, 2015) over every dimension of x [N, C] or [N, C, H, W] except C. Adds
/// `residual`, of x's shape, if it is defined. Then max(·, 0) with `options.relu`. Training uses the statistics of the
/// batch and updates the running ones. Inference uses the running ones.
Variable batch_norm(const Variable& x, const BatchNormState& state, const BatchNormOptions& options, bool training,
                    const Variable& residual = {});

/// Local response normalisation of x [N, C, H, W] across channels (Krizhevsky et al., 2012).
Variable local_response_norm(const Variable& x, const LocalResponseNormOptions& options = {});

using kernels::Extent2;
using kernels::PoolGeometry;

/// The greatest element of every window of x [N, C, H, W]. Windows have at most 255 elements.
Variable max_pool2d(const Variable& x, const PoolGeometry& geometry = {});
/// The mean of every window of x [N, C, H, W].
Variable average_pool2d(const Variable& x, const PoolGeometry& geometry = {});
/// The mean of every channel of x [N, C, H, W]: [N, C, 1, 1].
Variable global_average_pool2d(const Variable& x);

using kernels::DropoutDraw;

/// x / (1 - p) if the element is kept, else 0 (Srivastava et al., 2014). Which elements are kept depends only on `draw`
/// and on `samples`, i64 [N], the global index of the sample of each row.
Variable dropout(const Variable& x, const Tensor& samples, const DropoutDraw& draw);

/// The sum over `dimensions`, or over all of them if none is given. Negative dimensions count from the end. With `keep`
/// the dimensions stay, with extent 1; otherwise they go. The result is row-major, in x's dtype.
Variable sum(const Variable& x, const std::vector<int>& dimensions = {}, bool keep = false);
/// As `sum`, divided by the number of elements in each sum.
Variable mean(const Variable& x, const std::vector<int>& dimensions = {}, bool keep = false);

/// scale·dy summed to `shape`, which broadcasts to the shape of dy: the gradient of an operand that was broadcast.
Tensor sum_to(const Tensor& dy, const Shape& shape, double scale = 1);

/// x if it has this format, else a copy that has it.
Tensor in_format(Tensor x, MemoryFormat format);

/// The same elements in row-major order, in another shape. One extent may be -1: it follows from the others.
Variable reshape(const Variable& x, std::initializer_list<int64_t> extents);
/// [N, C·H·W] from [N, C, H, W], in the order C, H, W in every format. Takes any rank from 1 on.
Variable flatten(const Variable& x);
/// x with two dimensions exchanged. The result is row-major.
Variable transpose(const Variable& x, int first, int second);
/// The inputs one after another along `dimension`. Their other extents are equal. The result has the format of the
/// first input.
Variable concat(std::span<const Variable> inputs, int dimension);
Variable concat(std::initializer_list<Variable> inputs, int dimension);
/// The elements of x with indices [begin, end) along `dimension`.
Variable slice(const Variable& x, int dimension, int64_t begin, int64_t end);

/// Elements added before and after one dimension.
struct Padding {
  int64_t before = 0, after = 0;
};
/// x with `value` around it. `padding` has one entry per dimension of x.
Variable pad(const Variable& x, const std::vector<Padding>& padding, double value = 0);

/// x with elements of another floating dtype.
Variable convert(const Variable& x, DType dtype);

/// A sparse matrix in CSR form times the dense `weight` [columns, features]: y[n, :] = Σ values[e] · weight[indices[e],
/// :] over the elements e of row n, those in [offsets[n], offsets[n + 1]). It is PyTorch's embedding_bag with
/// mode="sum", per_sample_weights=values and include_last_offset=True. indices: i64 [elements] in [0, columns).
/// offsets: i64 [N + 1], from 0 to `elements`, never decreasing. values: f32 [elements], or undefined if all are 1. The
/// result is [N, features] in the dtype of `weight`, with zeros in rows without elements. Only `weight` gets a
/// gradient. The CPU checks indices and offsets. On CUDA, a row with an index outside is NaN.
Variable embedding_bag(const Tensor& indices, const Tensor& offsets, const Tensor& values, const Variable& weight);

}  // namespace tern

// Losses. Each is one number, of shape []. It is f64 for f64 inputs, and f32 for others.
namespace tern {

/// The cross-entropy between softmax(logits [N, C]) and (1 - smoothing)·one_hot(label) + smoothing / C. Labels are i64
/// [N] in [0, C).
Variable cross_entropy(const Variable& logits, const Tensor& labels, double smoothing = 0);
/// The mean of (x - target)² over all elements. The shapes are equal.
Variable mse(const Variable& x, const Tensor& target);
/// The mean over all elements of the cross-entropy between targets and sigmoid(logits): max(x, 0) - x·t +
/// log(1 + exp(-|x|)), as PyTorch's function of this name. Targets have the shape of the logits and values in [0, 1].
/// They have the dtype of the logits, or f32 beside bf16 logits.
Variable binary_cross_entropy_with_logits(const Variable& logits, const Tensor& targets);

}  // namespace tern
