#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "tern/autograd/variable.h"
#include "tern/kernels/options.h"

namespace tern {

// Arithmetic. Operands have one dtype and broadcast as in PyTorch. The result has the format of the operand with its
// shape (a's if both have it).

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

/// The number as a constant of shape [], in the dtype and on the device of `like`. It broadcasts to any shape.
Variable number(double value, const Variable& like);
inline Variable operator+(const Variable& a, double b) { return add(a, number(b, a)); }
inline Variable operator+(double a, const Variable& b) { return add(number(a, b), b); }
inline Variable operator-(const Variable& a, double b) { return subtract(a, number(b, a)); }
inline Variable operator-(double a, const Variable& b) { return subtract(number(a, b), b); }
inline Variable operator*(const Variable& a, double b) { return scale(a, b); }
inline Variable operator*(double a, const Variable& b) { return scale(b, a); }
inline Variable operator/(const Variable& a, double b) { return divide(a, number(b, a)); }
inline Variable operator/(double a, const Variable& b) { return divide(number(a, b), b); }
inline Variable operator-(const Variable& x) { return scale(x, -1); }

/// The greater (the lesser) of both; NaN if one is NaN. If they are equal, each gets half of the gradient.
Variable maximum(const Variable& a, const Variable& b);
Variable minimum(const Variable& a, const Variable& b);
/// a if mask != 0, otherwise b. mask is u8. All three broadcast to one shape.
Variable select(const Tensor& mask, const Variable& a, const Variable& b);

// Products and convolutions.

using kernels::MatmulOptions;

/// y[..., m, n] = op(a)[..., m, k] · op(b)[..., k, n]. op exchanges the last two dimensions if `options` say so.
/// Leading dimensions broadcast. A vector a [k] is a row, a vector b [k] a column; the result lacks that dimension.
Variable matmul(const Variable& a, const Variable& b, const MatmulOptions& options = {});

/// What an operation applies to its result in the same pass, and a copy of w in x's dtype and format, if there is one
/// (see Parameter::copy_for).
struct Fused {
  bool relu = false;
  Tensor w_as_x = {};
  bool spare_channels = false;  ///< see Conv2d::Options
};

/// y[..., out] = x[..., in] · w[out, in]ᵀ + bias[out]; `bias` may be undefined. With a weight of shape [in] and a bias
/// of shape [], y is [...].
Variable linear(const Variable& x, const Variable& w, const Variable& bias, const Fused& fused = {});

using kernels::ConvGeometry;
using kernels::Extent2;

/// The cross-correlation of x [N, C, H, W], or of one image [C, H, W], with w [O, C/groups, kh, kw], plus bias [O],
/// which may be undefined. The result is [N, O, H', W'] in x's dtype, on the CPU in channels_last, and on CUDA in x's
/// format.
Variable conv2d(const Variable& x, const Variable& w, const Variable& bias, const ConvGeometry& geometry = {},
                const Fused& fused = {});

/// As conv2d with stride 1 and so much padding that the result has x's height and width, as PyTorch's padding='same'.
/// If the padding is odd, the end has one more.
Variable conv2d_same(const Variable& x, const Variable& w, const Variable& bias, const Extent2& dilation = 1,
                     int64_t groups = 1, const Fused& fused = {});
/// The transposed convolution: the gradient of a conv2d by its input, with x in place of the gradient of its result. x:
/// [N, C, H, W] or [C, H, W]; w: [C, O/groups, kh, kw]; bias: [O] or undefined. H' = (H - 1)·stride - 2·padding +
/// dilation·(kh - 1) + 1 + added. `added`, below the stride or the dilation, chooses among the sizes that conv2d maps
/// to H. It is PyTorch's conv_transpose2d, and its output_padding. The result has the format of conv2d's.
Variable conv_transpose2d(const Variable& x, const Variable& w, const Variable& bias, const ConvGeometry& geometry = {},
                          const Extent2& added = 0);

// Functions of each element. The result has the shape, dtype and format of x.

/// max(x, 0)
Variable relu(const Variable& x);
/// e^x
Variable exp(const Variable& x);
/// The natural logarithm: -infinity for 0, NaN for negative x.
Variable log(const Variable& x);
Variable sqrt(const Variable& x);
/// |x|. Its gradient at 0 is 0.
Variable abs(const Variable& x);
/// x^exponent. The result is NaN if x is negative and the exponent is not a whole number.
Variable pow(const Variable& x, double exponent);
/// min(max(x, low), high). The gradient is 0 outside of [low, high].
Variable clamp(const Variable& x, double low, double high = std::numeric_limits<double>::infinity());

/// x if x > 0, else slope·x
Variable leaky_relu(const Variable& x, double slope = 0.01);
Variable sigmoid(const Variable& x);
Variable tanh(const Variable& x);

using kernels::GeluForm;

/// x · Φ(x), as PyTorch's gelu. Φ is the distribution function of N(0, 1).
Variable gelu(const Variable& x, GeluForm form = GeluForm::exact);

/// x · sigmoid(x), also called swish.
Variable silu(const Variable& x);

// Softmax and normalisation.

/// exp(x) / Σ exp(x) over the last dimension. The result is row-major.
Variable softmax(const Variable& x);
/// log(softmax(x))
Variable log_softmax(const Variable& x);

using kernels::BatchNormOptions;
using kernels::LocalResponseNormOptions;

/// The parameters and the running statistics of a batch normalisation, each [C]. An undefined gamma is 1, an undefined
/// beta 0. Without running statistics, inference also uses those of the batch.
struct BatchNormState {
  Variable gamma, beta;
  Tensor running_mean, running_variance;
};

/// Batch normalisation (Ioffe and Szegedy, 2015) over every dimension of x [N, C], [N, C, L] or [N, C, H, W] except C.
/// Adds `residual`, of x's shape, if it is defined. Then max(·, 0) with `options.relu`. Training uses the statistics of
/// the batch and updates the running ones. Inference uses the running ones.
Variable batch_norm(const Variable& x, const BatchNormState& state, const BatchNormOptions& options, bool training,
                    const Variable& residual = {});

/// Layer normalisation (Ba, Kiros and Hinton, 2016): subtracts the mean over the last dimensions of x, which have the
/// extents `normalized`, and divides by sqrt(variance + epsilon). Then multiplies by gamma and adds beta, both of shape
/// `normalized`, if they are defined.
Variable layer_norm(const Variable& x, const Shape& normalized, const Variable& gamma = {}, const Variable& beta = {},
                    double epsilon = 1e-5);

/// Local response normalisation of x [N, C, ...], of rank 3 to 5, across channels (Krizhevsky et al., 2012).
Variable local_response_norm(const Variable& x, const LocalResponseNormOptions& options = {});

// Pooling and sizes of images. Poolings take x [N, C, H, W], or one image [C, H, W].

using kernels::PoolGeometry;

/// The greatest element of every window.
Variable max_pool2d(const Variable& x, const PoolGeometry& geometry = {});
/// The mean of every window.
Variable average_pool2d(const Variable& x, const PoolGeometry& geometry = {});
/// The mean of every channel: [N, C, 1, 1] or [C, 1, 1].
Variable global_average_pool2d(const Variable& x);

/// The means of `size` windows that cover x, as PyTorch's adaptive_avg_pool2d: window i begins at ⌊i·H/h⌋ and ends
/// before ⌈(i + 1)·H/h⌉.
Variable adaptive_average_pool2d(const Variable& x, const Extent2& size);
/// x [..., H, W] with each element repeated factor.h × factor.w times: [..., H·factor.h, W·factor.w]. Row-major.
Variable upsample_nearest2d(const Variable& x, const Extent2& factor);

// Dropout.

using kernels::DropoutDraw;

/// x / (1 - p) if the element is kept, else 0; 0 · x if p = 1 (Srivastava et al., 2014). Which elements are kept
/// depends only on `draw` and on `samples`, i64 [N], the global index of the sample of each row. A number has one row.
Variable dropout(const Variable& x, const Tensor& samples, const DropoutDraw& draw);

// Reductions. Without `dimensions` they reduce over all of them. Negative dimensions count from the end. With `keep`
// the dimensions stay, with extent 1; otherwise they go. The result is row-major, in x's dtype.

/// The sum over `dimensions`.
Variable sum(const Variable& x, const std::vector<int>& dimensions = {}, bool keep = false);
/// As `sum`, divided by the number of elements in each sum.
Variable mean(const Variable& x, const std::vector<int>& dimensions = {}, bool keep = false);

/// The greatest (the least) element over `dimensions`, as PyTorch's amax (amin). NaN if there is one. Equal greatest
/// elements share the gradient.
Variable max(const Variable& x, const std::vector<int>& dimensions = {}, bool keep = false);
Variable min(const Variable& x, const std::vector<int>& dimensions = {}, bool keep = false);
/// i64: the index along `dimension` of the first greatest element. NaN counts as the greatest.
Tensor argmax(const Tensor& x, int dimension = -1, bool keep = false);
/// Σ (x - mean)² / (n - correction) over the n elements of each result.
Variable variance(const Variable& x, const std::vector<int>& dimensions = {}, bool keep = false, int correction = 1);
/// log Σ exp(x) over `dimensions`, without overflow.
Variable logsumexp(const Variable& x, const std::vector<int>& dimensions, bool keep = false);

// Shapes and dtypes.

/// The same elements in row-major order, in another shape. One extent may be -1: it follows from the others.
Variable reshape(const Variable& x, std::initializer_list<int64_t> extents);
Variable reshape(const Variable& x, const Shape& shape);
/// [N, C·H·W] from [N, C, H, W], in the order C, H, W in every format. Takes any rank from 1 on.
Variable flatten(const Variable& x);
/// x without `dimension`, which has extent 1.
Variable squeeze(const Variable& x, int dimension);
/// x with a new dimension of extent 1 at `dimension` of the result.
Variable unsqueeze(const Variable& x, int dimension);
/// x repeated to `shape` by broadcasting. An extent of -1 stays that of x.
Variable expand(const Variable& x, const std::vector<int64_t>& extents);
/// x with its dimensions in another order: dimension i of the result is dimension order[i] of x. The result is
/// row-major.
Variable permute(const Variable& x, const std::vector<int>& order);
/// x with two dimensions exchanged. The result is row-major.
Variable transpose(const Variable& x, int first, int second);
/// The inputs one after another along `dimension`. Their other extents are equal; beside others, an input of shape [0]
/// adds nothing. The result has the format of the first input.
Variable concat(std::span<const Variable> inputs, int dimension);
Variable concat(std::initializer_list<Variable> inputs, int dimension);
/// The inputs, all of one shape, along a new dimension: `dimension` of the result.
Variable stack(std::span<const Variable> inputs, int dimension);
Variable stack(std::initializer_list<Variable> inputs, int dimension);
/// The parts of x along `dimension`, with these extents. Their sum is x's extent.
std::vector<Variable> split(const Variable& x, const std::vector<int64_t>& extents, int dimension);
/// The elements of x with indices [begin, end) along `dimension`.
Variable slice(const Variable& x, int dimension, int64_t begin, int64_t end);

/// Elements added before and after one dimension. Negative numbers take elements away.
struct Padding {
  int64_t before = 0, after = 0;
};
/// x with `value` around it. `padding` has one entry per dimension of x.
Variable pad(const Variable& x, const std::vector<Padding>& padding, double value = 0);

using kernels::Border;

/// x [..., H, W] with a border of its mirror image, in which the edge itself is not repeated: `top` and `bottom` are
/// below H, `left` and `right` below W. Negative numbers take elements away.
Variable reflection_pad2d(const Variable& x, const Border& border);

/// x with elements of another floating dtype.
Variable convert(const Variable& x, DType dtype);

// Lookup, attention and recurrence.

/// The rows of weight [rows, features] with these indices, i64 in [0, rows) of any shape: [..., features]. The gradient
/// of a row is the sum over its uses. The CPU checks the indices. On CUDA, an index outside gives NaN.
Variable embedding(const Tensor& indices, const Variable& weight);

/// A sparse matrix in CSR form times the dense `weight` [columns, features]: y[n, :] = Σ values[e] · weight[indices[e],
/// :] over the elements e of row n, those in [offsets[n], offsets[n + 1]). It is PyTorch's embedding_bag with
/// mode="sum", per_sample_weights=values and include_last_offset=True. indices: i64 [elements] in [0, columns).
/// offsets: i64 [N + 1], from 0 to `elements`, never decreasing. values: f32 [elements], or undefined if all are 1. The
/// result is [N, features] in the dtype of `weight`, with zeros in rows without elements. Only `weight` gets a
/// gradient. The CPU checks indices and offsets. On CUDA, a row with an index outside is NaN.
///
/// With `RowsOfGradient::touched`, as with PyTorch's sparse=True, a `weight` that is a leaf gets the same gradient
/// without the rows that have no element, which are zero (`RowGradient`). It is summed in the same order.
enum class RowsOfGradient : uint8_t { all, touched };
Variable embedding_bag(const Tensor& indices, const Tensor& offsets, const Tensor& values, const Variable& weight,
                       RowsOfGradient rows = RowsOfGradient::all);

struct AttentionOptions {
  std::optional<double> scale = {};  ///< of the scores; 1/√D if not given
  bool causal = false;               ///< query i sees the keys j <= i only
};
/// Scaled dot-product attention (Vaswani et al., 2017) of queries [..., L, D] over keys [..., S, D] and values [..., S,
/// E]: [..., L, E]. Leading dimensions broadcast. It is PyTorch's scaled_dot_product_attention, without a mask. No
/// matrix [L, S] is stored.
Variable attention(const Variable& q, const Variable& k, const Variable& v, const AttentionOptions& options = {});

/// The weights of one LSTM layer. The gates i, f, g and o follow each other in the first dimension, as in PyTorch.
struct LstmWeights {
  Variable input;            ///< [4·H, I]
  Variable recurrent;        ///< [4·H, R]; R is H without a projection
  Variable bias = {};        ///< [4·H]
  Variable projection = {};  ///< [R, H] (Sak, Senior and Beaufays, 2014)
  Variable peepholes = {};   ///< [3, H], for i, f and o (Gers, Schraudolph and Cummins, 2000)
};
/// The state between two steps: hidden [N, R] and cell [N, H].
struct LstmState {
  Variable hidden = {}, cell = {};
};
struct LstmOutput {
  Variable y;      ///< [T, N, R]
  LstmState last;  ///< after the last step of each sequence
};
/// An LSTM layer (Hochreiter and Schmidhuber, 1997) over x [T, N, I]: one of PyTorch's nn.LSTM, and peepholes.
/// Undefined initial states are 0. lengths: i64 [N] in [0, T], or undefined if all are T. Beyond the length of a
/// sequence, y is 0 and the state stays.
LstmOutput lstm(const Variable& x, const LstmWeights& weights, const LstmState& initial = {},
                const Tensor& lengths = {});

// Losses. Each is one number, of shape [], or one for each element or label. It is f64 for f64 inputs, and f32 for
// others.

enum class LossReduction : uint8_t { mean, sum, none };

struct CrossEntropyOptions {
  double smoothing = 0;
  Tensor weights = {};                            ///< of the classes, [C], in the dtype of the loss; 1 if undefined
  std::optional<int64_t> ignored_label = {};      ///< counts neither in the sum nor in the mean: its loss is 0
  LossReduction reduction = LossReduction::mean;  ///< none: of the labels' shape
};

/// The cross-entropy between softmax(logits [N, C, ...]) over C and a target distribution: (1 - smoothing)·t +
/// smoothing / C. `targets` are labels, i64 [N, ...] in [0, C), and t is 1 at the label; or probabilities t, of the
/// shape of the logits. Logits of shape [C] have one label, of shape []. A class counts by its weight. The mean divides
/// by the sum of the labels' weights, or by the number of distributions, as in PyTorch; it is NaN if all labels are
/// ignored. On the CPU, a label outside is an error; on CUDA it gives a NaN loss.
Variable cross_entropy(const Variable& logits, const Tensor& targets, const CrossEntropyOptions& options = {});
/// (x - target)². The shapes are equal.
Variable mse(const Variable& x, const Tensor& target, LossReduction reduction = LossReduction::mean);
/// |x - target|. The shapes are equal.
Variable l1(const Variable& x, const Tensor& target, LossReduction reduction = LossReduction::mean);
/// The cross-entropy between targets and sigmoid(logits): max(x, 0) - x·t + log(1 + exp(-|x|)), as PyTorch's function
/// of this name. Targets have the shape of the logits and values in [0, 1]. They have the dtype of the logits, or f32
/// beside bf16 logits.
Variable binary_cross_entropy_with_logits(const Variable& logits, const Tensor& targets,
                                          LossReduction reduction = LossReduction::mean);

struct CtcOptions {
  Tensor input_lengths = {};  ///< i64 [N] in [0, T]: the frames of each sequence; all T if undefined
  Tensor label_lengths = {};  ///< i64 [N] in [0, S]: the labels of each sequence; all S if undefined
  int64_t blank = 0;          ///< the class of a frame without a label
  LossReduction reduction = LossReduction::mean;  ///< none: [N]
  bool zero_infinity = false;                     ///< infinite losses and their gradients become 0
};
/// Connectionist temporal classification (Graves et al., 2006), as PyTorch's ctc_loss: -log of the probability that the
/// frames of a sequence spell its labels. log_probabilities: [T, N, C], from log_softmax. labels: i64 [N, S] in [0, C),
/// none of them the blank. The mean divides each loss by the number of its labels, at least 1, and then by N. A
/// sequence needs a frame for each label, and one more between two equal labels. With fewer, its loss is infinite and
/// its gradient NaN, unless `zero_infinity`. The gradient with respect to log_probabilities is that of the definition;
/// PyTorch's has the gradient of log_softmax in it. The gradient with respect to the logits is the same in both. All
/// tensors except the lengths are on one device. The CPU checks labels and lengths. On CUDA, a sequence with one out of
/// range gives NaN.
Variable ctc_loss(const Variable& log_probabilities, const Tensor& labels, const CtcOptions& options = {});

struct LinearCrossEntropyOptions {
  int64_t top = 0;       ///< how many of the best classes of each row to return
  int64_t chunk = 8192;  ///< classes whose logits are in memory at once
  /// Called with the logits of each chunk, [N, classes of the chunk], before they are used. It may change them, as a
  /// sum over ranks does. The result then has no gradient.
  std::function<void(const Tensor& logits)> complete = {};
};
struct LinearCrossEntropyOutput {
  Variable loss;  ///< of shape []
  Tensor top;     ///< i64 [N, top]: classes by falling logit, the lower class first if logits are equal; -1: no class
};
/// The softmax cross-entropy of logits x · weightᵀ over very many classes, of which a row may have several as labels:
/// the mean over the rows of -1/k · Σ log softmax(logits)[label] over the row's k labels. A row without labels has loss
/// 0. x: [N, in]; weight: [classes, in]. The labels are a sparse matrix in CSR form: those of row n are labels[e] for e
/// in [offsets[n], offsets[n + 1]), i64 in [0, classes); a label that comes twice counts twice. All tensors
/// are on one device.
///
/// Forward and backward compute the logits by chunks of classes, so no tensor [N, classes] is stored. The backward
/// computes each chunk again. It can give the gradient of `weight` chunk by chunk, so that no second tensor [classes,
/// in] is stored either: see Parameter::on_rows. The CPU checks labels and offsets.
LinearCrossEntropyOutput linear_cross_entropy(const Variable& x, const Variable& weight, const Tensor& labels,
                                              const Tensor& offsets, const LinearCrossEntropyOptions& options = {});

}  // namespace tern
