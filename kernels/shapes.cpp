#include <algorithm>

#include "tern/core/error.h"
#include "tern/kernels/attention.h"
#include "tern/kernels/convolution.h"
#include "tern/kernels/ctc.h"
#include "tern/kernels/embedding.h"
#include "tern/kernels/loss.h"
#include "tern/kernels/matmul.h"
#include "tern/kernels/normalization.h"
#include "tern/kernels/pooling.h"
#include "tern/kernels/reduction.h"

// The shapes of results, and errors that say what does not fit.

namespace tern::kernels {
namespace {

constexpr int64_t kMostGeometry = int64_t{1} << 31;  // of a stride, dilation or padding: products of them stay exact

int64_t output_extent(int64_t input, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  const int64_t room = input + 2 * padding - (dilation * (kernel - 1) + 1);
  return room < 0 ? 0 : room / stride + 1;
}

int64_t pooled_extent(int64_t input, int64_t window, int64_t stride, int64_t padding, bool ceil_mode) {
  const int64_t room = input + 2 * padding - window + (ceil_mode ? stride - 1 : 0);
  if (room < 0) return 0;
  int64_t extent = room / stride + 1;
  if ((extent - 1) * stride >= input + padding) --extent;  // the last window would begin in the padding
  return extent;
}

}  // namespace

Shape matmul_output_shape(const Shape& a, const Shape& b, const MatmulOptions& options) {
  const bool ranks_fit = a.rank() >= 2 && a.rank() <= 4 && (b.rank() == 2 || b.rank() == a.rank());
  const auto rows = [](const Shape& matrices, bool transposed) { return matrices[transposed ? -1 : -2]; };
  check(ranks_fit && rows(a, !options.transpose_a) == rows(b, options.transpose_b) &&
            (b.rank() == 2 || std::equal(a.begin(), a.end() - 2, b.begin())),
        "matmul: ", a, options.transpose_a ? "ᵀ" : "", " times ", b, options.transpose_b ? "ᵀ" : "",
        ", expected [..., m, k] times [..., k, n] or [k, n]");
  Shape y = a;
  y[-2] = rows(a, options.transpose_a);
  y[-1] = rows(b, !options.transpose_b);
  return Shape(std::span(y.begin(), y.end()));  // checks the number of elements
}

Shape linear_output_shape(const Shape& x, const Shape& w) {
  check(x.rank() == 2 && w.rank() == 2 && x[1] == w[1], "linear: input of shape ", x, ", weight of shape ", w,
        ", expected [N, in] and [out, in]");
  return {x[0], w[0]};
}

void check_conv_geometry(const char* operation, const Shape& w, const ConvGeometry& geometry) {
  const auto& [stride, padding, dilation, groups] = geometry;
  const auto within = [](int64_t least, const Extent2& found) {
    return std::min(found.h, found.w) >= least && std::max(found.h, found.w) <= kMostGeometry;
  };
  check(within(1, stride) && within(1, dilation) && within(0, padding), operation, ": stride ", stride.h, "x", stride.w,
        ", padding ", padding.h, "x", padding.w, ", dilation ", dilation.h, "x", dilation.w,
        ", expected strides and dilations from 1 and padding from 0, up to 2^31");
  check(groups >= 1 && w[0] % groups == 0, operation, ": weight ", w, " in ", groups,
        groups == 1 ? " group" : " groups", ", expected a number that divides ", w[0]);
}

Shape conv2d_output_shape(const Shape& x, const Shape& w, const ConvGeometry& geometry) {
  const auto& [stride, padding, dilation, groups] = geometry;
  check(x.rank() == 4 && w.rank() == 4, "conv2d: input ", x, " and weight ", w, ", expected 4 dimensions each");
  check(x[1] >= 1 && w[0] >= 1, "conv2d: input ", x, " and weight ", w,
        ", expected at least one channel on both sides");
  check_conv_geometry("conv2d", w, geometry);
  check(x[1] == w[1] * groups, "conv2d: input ", x, " has ", x[1], " channels, weight ", w, " in ", groups,
        groups == 1 ? " group" : " groups", " expects ", w[1] * groups);
  const int64_t h = output_extent(x[2], w[2], stride.h, padding.h, dilation.h);
  const int64_t width = output_extent(x[3], w[3], stride.w, padding.w, dilation.w);
  check(w[2] >= 1 && w[3] >= 1 && h >= 1 && width >= 1, "conv2d: weight ", w, " with dilation ", dilation.h, "x",
        dilation.w, " does not fit into input ", x, " with padding ", padding.h, "x", padding.w);
  return {x[0], w[0], h, width};
}

Shape pool2d_output_shape(const Shape& x, const PoolGeometry& geometry, const char* operation) {
  const auto& [window, stride, padding, ceil_mode, count_include_pad] = geometry;
  check(x.rank() == 4, operation, ": input ", x, ", expected 4 dimensions");
  check(x[2] >= 1 && x[3] >= 1, operation, ": input ", x, ", expected at least one row and one column");
  check(std::min({window.h, window.w, stride.h, stride.w}) >= 1 &&
            std::max({window.h, stride.h, stride.w}) < kMostGeometry && window.w <= (kMostGeometry - 1) / window.h,
        operation, ": window ", window.h, "x", window.w, ", stride ", stride.h, "x", stride.w,
        ", expected 1 or more, and a window of fewer than 2^31 elements");
  check(0 <= padding.h && 2 * padding.h <= window.h && 0 <= padding.w && 2 * padding.w <= window.w, operation,
        ": padding ", padding.h, "x", padding.w, " for window ", window.h, "x", window.w,
        ", expected 0 to half the window");
  const int64_t h = pooled_extent(x[2], window.h, stride.h, padding.h, ceil_mode);
  const int64_t w = pooled_extent(x[3], window.w, stride.w, padding.w, ceil_mode);
  check(h >= 1 && w >= 1, operation, ": window ", window.h, "x", window.w, " does not fit into input ", x,
        " with padding ", padding.h, "x", padding.w);
  return {x[0], x[1], h, w};
}

void check_rows(const char* operation, const Tensor& x, const Tensor& y, DType dtype) {
  check(x.rank() == 2 && x.size(1) >= 1 && y.shape() == Shape{x.size(0)} && y.dtype() == dtype, operation,
        ": input of shape ", x.shape(), ", output ", y.dtype(), " of shape ", y.shape(), ", expected [R, C] and ",
        dtype, " [R]");
}

int64_t batch_norm_count(const Shape& x) {
  check(x.rank() == 2 || x.rank() == 4, "batch_norm: input ", x, ", expected [N, C] or [N, C, H, W]");
  const int64_t count = x.rank() == 2 ? x[0] : x[0] * x[2] * x[3];
  check_input(count >= 2, "batch_norm: input of shape ", x, ", values per channel: ", count,
              ", training expects 2 or more: a larger batch has them");
  return count;
}

void check_label(const Tensor& labels, int64_t row, int64_t classes) {
  const int64_t label = labels.data<int64_t>()[row];
  if (label < 0 || label >= classes) throw LabelError(labels, row, classes);
}

void check_binary_target(const Tensor& x, const Tensor& target) {
  check(x.shape() == target.shape() && x.format() == target.format() && target.dtype() == parameter_dtype(x.dtype()),
        "binary_cross_entropy: logits ", x.dtype(), " ", x.shape(), " ", x.format(), ", targets ", target.dtype(), " ",
        target.shape(), " ", target.format(), ", expected targets of ", parameter_dtype(x.dtype()),
        " in the same shape and format");
}

void check_ctc_shapes(const Tensor& log_probabilities, const CtcTargets& targets) {
  const Tensor& x = log_probabilities;
  const auto& [labels, input_lengths, label_lengths, blank, zero_infinity] = targets;
  check(x.rank() == 3 && is_floating(x.dtype()) && x.size(2) >= 1, "ctc_loss: log-probabilities ", x.dtype(),
        " of shape ", x.shape(), ", expected f32, f64 or bf16 [T, N, C] with one class or more");
  const int64_t batch = x.size(1), classes = x.size(2);
  check(labels.rank() == 2 && labels.size(0) == batch && labels.dtype() == DType::i64, "ctc_loss: labels ",
        labels.dtype(), " of shape ", labels.shape(), ", expected i64 [N, S] with N = ", batch);
  const auto check_lengths = [&](const char* name, const Tensor& lengths) {
    check(lengths.shape() == Shape{batch} && lengths.dtype() == DType::i64, "ctc_loss: ", name, ' ', lengths.dtype(),
          " of shape ", lengths.shape(), ", expected i64 [", batch, "]");
  };
  check_lengths("input lengths", input_lengths);
  check_lengths("label lengths", label_lengths);
  check(labels.device() == x.device() && input_lengths.device() == x.device() && label_lengths.device() == x.device(),
        "ctc_loss: labels on ", labels.device(), ", input lengths on ", input_lengths.device(), ", label lengths on ",
        label_lengths.device(), ", log-probabilities on ", x.device(), ", expected one device");
  check(blank >= 0 && blank < classes, "ctc_loss: blank ", blank, ", expected 0 to ", classes - 1, " for ", classes,
        " classes");
}

void check_ctc_sequence(const Tensor& log_probabilities, const CtcTargets& targets, int64_t n) {
  const int64_t frames = targets.input_lengths.data<int64_t>()[n], count = targets.label_lengths.data<int64_t>()[n],
                most_frames = log_probabilities.size(0), most = targets.labels.size(1),
                classes = log_probabilities.size(2);
  check(frames >= 0 && frames <= most_frames, "ctc_loss: sequence ", n, " has input length ", frames,
        ", expected 0 to ", most_frames);
  check(count >= 0 && count <= most, "ctc_loss: sequence ", n, " has label length ", count, ", expected 0 to ", most);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t label = targets.labels.data<int64_t>()[n * most + i];
    check(label >= 0 && label < classes, "ctc_loss: label ", i, " of sequence ", n, " is ", label, ", expected 0 to ",
          classes - 1, " for ", classes, " classes");
    check(label != targets.blank, "ctc_loss: label ", i, " of sequence ", n, " is ", label,
          ", the blank, expected another class");
  }
}

Shape embedding_bag_output_shape(const Tensor& weight, const Bags& bags) {
  const auto& [indices, offsets, values] = bags;
  const bool bag = offsets.defined();
  check(weight.rank() == 2 && is_floating(weight.dtype()), embedding_name(bags), ": weight ", weight.dtype(),
        " of shape ", weight.shape(), ", expected f32, f64 or bf16 [", bag ? "columns" : "rows", ", features]");
  const auto check_vector = [](const char* name, const Tensor& tensor) {
    check(tensor.defined() && tensor.rank() == 1 && tensor.dtype() == DType::i64, "embedding_bag: ", name, ' ',
          tensor.defined() ? to_string(tensor.dtype()) : "undefined", " of shape ", tensor.shape(), ", expected i64 [",
          name[0] == 'i' ? "elements" : "N + 1", "]");
  };
  check_vector("indices", indices);
  if (bag) {
    check_vector("offsets", offsets);
    check(offsets.numel() >= 1, "embedding_bag: offsets of shape [0], expected [N + 1]");
  }
  check(!values.defined() || (values.shape() == indices.shape() && values.dtype() == DType::f32),
        "embedding_bag: values ", values.dtype(), " of shape ", values.shape(), ", expected f32 of shape ",
        indices.shape(), ", one for each index");
  const auto same_device = [&](const Tensor& tensor) { return tensor.device() == weight.device(); };
  const auto device_of = [&](const Tensor& tensor) { return tensor.defined() ? tensor.device() : weight.device(); };
  check(same_device(indices) && device_of(offsets) == weight.device() && device_of(values) == weight.device(),
        "embedding_bag: indices on ", indices.device(), ", offsets on ", device_of(offsets), ", values on ",
        device_of(values), ", weight on ", weight.device(), ", expected one device");
  return {bags.rows(), weight.size(1)};
}

void check_bag_elements(const char* operation, const Bags& bags, int64_t columns) {
  const auto indices = bags.indices.span<int64_t>();
  const auto elements = static_cast<int64_t>(indices.size());
  if (bags.offsets.defined()) {
    const auto offsets = bags.offsets.span<int64_t>();
    check(offsets.front() == 0 && offsets.back() == elements, operation, ": offsets from ", offsets.front(), " to ",
          offsets.back(), ", expected from 0 to ", elements, ", the number of indices");
    const auto falls = std::ranges::is_sorted_until(offsets);
    check(falls == offsets.end(), operation, ": offset ", falls - offsets.begin(), " falls to ",
          falls == offsets.end() ? 0 : *falls, ", expected no less than the one before");
  }
  const auto outside = std::ranges::find_if(indices, [=](int64_t index) { return index < 0 || index >= columns; });
  check(outside == indices.end(), operation, ": element ", outside - indices.begin(), " has index ",
        outside == indices.end() ? 0 : *outside, ", expected 0 to ", columns - 1, " for ", columns,
        bags.offsets.defined() ? " columns" : " rows");
}

Shape attention_output_shape(const Tensor& q, const Tensor& k, const Tensor& v) {
  const bool fits = q.rank() == 3 && k.rank() == 3 && v.rank() == 3 && q.size(0) == k.size(0) &&
                    k.size(0) == v.size(0) && q.size(2) == k.size(2) && k.size(1) == v.size(1);
  check(fits && q.dtype() == k.dtype() && k.dtype() == v.dtype() && is_floating(q.dtype()), "attention: queries ",
        q.dtype(), " ", q.shape(), ", keys ", k.dtype(), " ", k.shape(), ", values ", v.dtype(), " ", v.shape(),
        ", expected [..., L, D], [..., S, D] and [..., S, E] of one floating dtype");
  check(k.size(1) >= 1, "attention: keys of shape ", k.shape(), ", expected one key or more");
  return {q.size(0), q.size(1), v.size(2)};
}

}  // namespace tern::kernels
