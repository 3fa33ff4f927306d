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

// Elementwise arithmetic. Operands share dtype and broadcast as in PyTorch; the result has the format of the
// operand with its shape (a's if both).
namespace tern {

Variable add(const Variable& a, const Variable& b);
Variable subtract(const Variable& a, const Variable& b);
Variable multiply(const Variable& a, const Variable& b);
Variable divide(const Variable& a, const Variable& b);
/// max(a + b, 0) of equal shapes: how a residual block ends.
Variable add_relu(const Variable& a, const Variable& b);
/// factor·x
Variable scale(const Variable& x, double factor);

inline Variable operator+(const Variable& a, const Variable& b) { return add(a, b); }
inline Variable operator-(const Variable& a, const Variable& b) { return subtract(a, b); }
inline Variable operator*(const Variable& a, const Variable& b) { return multiply(a, b); }
inline Variable operator/(const Variable& a, const Variable& b) { return divide(a, b); }

using kernels::MatmulOptions;

/// y[..., m, n] = op(a)[..., m, k] · op(b)[..., k, n], where op exchanges the last two dimensions as `options` say.
/// Ranks 2 to 4; the leading dimensions are equal, or b has rank 2 and serves every matrix of a.
Variable matmul(const Variable& a, const Variable& b, const MatmulOptions& options = {});

/// What an operation does last, in the same pass.
struct Fused {
  bool relu = false;
};

/// y[N, out] = x[N, in] · w[out, in]ᵀ + bias[out]; `bias` may be undefined.
Variable linear(const Variable& x, const Variable& w, const Variable& bias, const Fused& fused = {});

using kernels::ConvGeometry;
using kernels::Extent2;

/// The cross-correlation of x [N, C, H, W] with w [O, C/groups, kh, kw], plus bias [O], which may be undefined:
/// [N, O, H', W'] in x's format and dtype.
Variable conv2d(const Variable& x, const Variable& w, const Variable& bias, const ConvGeometry& geometry = {},
                const Fused& fused = {});

}  // namespace tern

// Elementwise functions of one value; outputs have its shape, dtype and format.
namespace tern {

/// max(x, 0)
Variable relu(const Variable& x);
/// x where x > 0, else slope·x
Variable leaky_relu(const Variable& x, double slope = 0.01);
Variable sigmoid(const Variable& x);
Variable tanh(const Variable& x);

using kernels::GeluForm;

/// x · Φ(x), Φ the distribution function of N(0, 1), as PyTorch's gelu
Variable gelu(const Variable& x, GeluForm form = GeluForm::exact);

/// 0 if y <= 0, else dy, also if y is NaN: the gradient through a relu that gave y, in y's format; written into dy
/// where nobody else holds that.
Tensor relu_gradient(const Tensor& y, Tensor dy);

/// exp(x) / Σ exp(x) over the last dimension; row-major.
Variable softmax(const Variable& x);
/// log(softmax(x))
Variable log_softmax(const Variable& x);

using kernels::BatchNormOptions;
using kernels::LocalResponseNormOptions;

/// What a batch normalisation learns and remembers, each [C].
struct BatchNormState {
  Variable gamma, beta;
  Tensor running_mean, running_variance;
};

/// Ioffe and Szegedy, 2015, over every dimension of x [N, C] or [N, C, H, W] but C, plus `residual` (of x's shape)
/// where defined, then max(·, 0) with `options.relu`. Training uses the batch's statistics and updates the running
/// ones; inference uses the running ones.
Variable batch_norm(const Variable& x, const BatchNormState& state, const BatchNormOptions& options, bool training,
                    const Variable& residual = {});

/// Across channels (Krizhevsky et al., 2012), x [N, C, H, W].
Variable local_response_norm(const Variable& x, const LocalResponseNormOptions& options = {});

using kernels::Extent2;
using kernels::PoolGeometry;

/// The greatest element of every window of x [N, C, H, W]; windows of at most 255 elements.
Variable max_pool2d(const Variable& x, const PoolGeometry& geometry = {});
/// The mean of every window.
Variable average_pool2d(const Variable& x, const PoolGeometry& geometry = {});
/// The mean of every channel: [N, C, 1, 1].
Variable global_average_pool2d(const Variable& x);

using kernels::DropoutDraw;

/// x / (1 - p) where kept, else 0 (Srivastava et al., 2014). Which elements drop follows from `draw` and the global
/// index of each row's sample, `samples` i64 [N], alone.
Variable dropout(const Variable& x, const Tensor& samples, const DropoutDraw& draw);

/// The sum over `dimensions` (negative ones count from the end; none given: over all), which then have extent 1 with
/// `keep` and are gone without. Row-major; in x's dtype.
Variable sum(const Variable& x, const std::vector<int>& dimensions = {}, bool keep = false);
/// As `sum`, divided by how many elements it sums.
Variable mean(const Variable& x, const std::vector<int>& dimensions = {}, bool keep = false);

/// scale·dy summed to `shape`, which broadcasts to dy's: the gradient of an operand that was broadcast.
Tensor sum_to(const Tensor& dy, const Shape& shape, double scale = 1);

/// `x` itself where it already lies in `format`; else a copy that does.
Tensor in_format(Tensor x, MemoryFormat format);

/// The same elements in row-major order under another shape; one extent may be -1.
Variable reshape(const Variable& x, std::initializer_list<int64_t> extents);
/// [N, C·H·W] from [N, C, H, W], in the order C, H, W whatever the format; any rank from 1 on.
Variable flatten(const Variable& x);
/// Two dimensions exchanged; row-major.
Variable transpose(const Variable& x, int first, int second);
/// `inputs` one after another along `dimension`; every other extent agrees. In the format of the first.
Variable concat(std::span<const Variable> inputs, int dimension);
Variable concat(std::initializer_list<Variable> inputs, int dimension);
/// Indices [begin, end) along `dimension`.
Variable slice(const Variable& x, int dimension, int64_t begin, int64_t end);

/// Elements added before and after one dimension.
struct Padding {
  int64_t before = 0, after = 0;
};
/// x surrounded by `value`; one entry per dimension of x.
Variable pad(const Variable& x, const std::vector<Padding>& padding, double value = 0);

/// x with elements of another floating dtype.
Variable convert(const Variable& x, DType dtype);

}  // namespace tern

// Losses: means over the batch, of rank 0 and f32 (f64 for f64).
namespace tern {

/// The cross-entropy between softmax(logits [N, C]) and (1 - smoothing)·one_hot(label) + smoothing / C; labels i64 [N]
/// in [0, C).
Variable cross_entropy(const Variable& logits, const Tensor& labels, double smoothing = 0);
/// (x - target)², over all elements; equal shapes.
Variable mse(const Variable& x, const Tensor& target);

}  // namespace tern
