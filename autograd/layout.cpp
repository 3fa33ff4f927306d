#include "tern/autograd/functional.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "tern/autograd/operation.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/reduction.h"

namespace tern {
namespace {

struct Reshape {
  std::vector<int64_t> extents;
  Shape x_shape;

  Tensor forward(const Tensor& x) {
    x_shape = x.shape();
    return in_format(x, MemoryFormat::row_major).reshape(extents);
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    return {in_format(dy, MemoryFormat::row_major).reshape(x_shape)};
  }
};

struct Permute {
  kernels::Order order;

  static Tensor in_order(const Tensor& x, const kernels::Order& order) {
    Shape shape = x.shape();
    for (int d = 0; d < x.rank(); ++d) shape[d] = x.size(order[static_cast<size_t>(d)]);
    Tensor y = Tensor::empty(shape, {x.dtype(), x.device()});
    kernels::permute(in_format(x, MemoryFormat::row_major), order, y);
    return y;
  }
  Tensor forward(const Tensor& x) const { return in_order(x, order); }
  Gradients backward(const Tensor& dy, const Needs&) const {
    kernels::Order back{};
    for (int d = 0; d < dy.rank(); ++d) back[static_cast<size_t>(order[static_cast<size_t>(d)])] = d;
    return {in_order(dy, back)};
  }
};

struct Expand {
  std::vector<int64_t> extents;
  Shape x_shape = {};

  Tensor forward(const Tensor& x) {
    x_shape = x.shape();
    const auto fail_shape = [&] {
      fail({"expand: ", x_shape, " to ", Shape(extents), ", expected extents that repeat"});
    };
    const auto added = static_cast<int>(extents.size()) - x.rank();
    if (added < 0) fail_shape();
    std::vector<int64_t> aligned(static_cast<size_t>(added), 1);
    aligned.insert(aligned.end(), x_shape.begin(), x_shape.end());
    for (size_t d = 0; d < extents.size(); ++d) {
      if (extents[d] == -1 && static_cast<int>(d) >= added) extents[d] = aligned[d];
      if (extents[d] < 0 || (aligned[d] != 1 && aligned[d] != extents[d])) fail_shape();
    }
    Tensor y = Tensor::empty(Shape(extents), {x.dtype(), x.device()});
    kernels::broadcast_to(in_format(x, MemoryFormat::row_major).reshape(aligned), 1, y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const { return {sum_to(dy, x_shape)}; }
};

struct Split {
  std::vector<int64_t> extents;
  int dimension;
  Shape x_shape = {};

  std::vector<Tensor> forward(const Tensor& x) {
    x_shape = x.shape();
    dimension = place_of("split", x_shape, dimension);
    int64_t total = 0;
    for (const int64_t extent : extents) {
      check(extent >= 0, "split: an extent of ", extent, ", expected 0 or more");
      total += extent;
    }
    check(total == x_shape[dimension], "split: extents that sum to ", total, ", expected ", x_shape[dimension],
          ", the extent of dimension ", dimension, " of ", x_shape);
    std::vector<Tensor> parts;
    kernels::Offsets offsets{};
    for (const int64_t extent : extents) {
      Shape shape = x_shape;
      shape[dimension] = extent;
      kernels::extract(x, offsets, parts.emplace_back(Tensor::empty(shape, x.options())));
      offsets[static_cast<size_t>(dimension)] += extent;
    }
    return parts;
  }
  Gradients backward(const Gradients& dys, const Needs&) const {
    Tensor dx;
    kernels::Offsets offsets{};
    for (size_t i = 0; i < dys.size(); ++i) {
      if (dys[i].defined()) {
        if (!dx.defined()) dx = filled(x_shape, 0, dys[i].options());
        kernels::insert(in_format(dys[i], dx.format()), offsets, dx);
      }
      offsets[static_cast<size_t>(dimension)] += extents[i];
    }
    return {dx};
  }
};

struct Concat {
  int dimension;
  std::vector<Shape> shapes;

  Tensor forward(std::span<const Tensor> inputs) {
    check(!inputs.empty(), "concat: found no inputs, expected 1 or more");
    const Tensor& like = inputs.front();
    dimension = place_of("concat", like.shape(), dimension);
    Shape total = like.shape();
    total[dimension] = 0;
    for (const Tensor& x : inputs) {
      Shape expected = like.shape();
      if (x.rank() == like.rank()) expected[dimension] = x.size(dimension);
      check(x.shape() == expected && x.dtype() == like.dtype(), "concat: ", x.dtype(), " ", x.shape(), " beside ",
            like.dtype(), " ", like.shape(), " along dimension ", dimension);
      total[dimension] += x.size(dimension);
      shapes.push_back(x.shape());
    }
    Tensor y = Tensor::empty(total, like.options());
    kernels::Offsets offsets{};
    for (const Tensor& x : inputs) {
      kernels::insert(in_format(x, y.format()), offsets, y);
      offsets[static_cast<size_t>(dimension)] += x.size(dimension);
    }
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs& needs) const {
    Gradients gradients(shapes.size());
    kernels::Offsets offsets{};
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (needs[i]) {
        gradients[i] = Tensor::empty(shapes[i], dy.options());
        kernels::extract(dy, offsets, gradients[i]);
      }
      offsets[static_cast<size_t>(dimension)] += shapes[i][dimension];
    }
    return gradients;
  }
};

struct Slice {
  int dimension;
  int64_t begin, end;
  Shape x_shape;
  kernels::Offsets offsets{};

  Tensor forward(const Tensor& x) {
    x_shape = x.shape();
    dimension = place_of("slice", x_shape, dimension);
    check(0 <= begin && begin <= end && end <= x_shape[dimension], "slice: indices ", begin, " to ", end,
          " of dimension ", dimension, " of shape ", x_shape, ", expected a range within 0 to ", x_shape[dimension]);
    offsets[static_cast<size_t>(dimension)] = begin;
    Shape shape = x_shape;
    shape[dimension] = end - begin;
    Tensor y = Tensor::empty(shape, x.options());
    kernels::extract(x, offsets, y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = Tensor::zeros(x_shape, dy.options());
    kernels::insert(dy, offsets, dx);
    return {dx};
  }
};

struct Pad {
  std::vector<Padding> padding;
  double value;
  Shape x_shape;
  kernels::Offsets offsets{};

  Tensor forward(const Tensor& x) {
    x_shape = x.shape();
    check(padding.size() == static_cast<size_t>(x.rank()), "pad: ", padding.size(), " paddings for shape ", x_shape,
          ", expected one per dimension");
    Shape shape = x_shape;
    for (int i = 0; i < x.rank(); ++i) {
      const auto [before, after] = padding[static_cast<size_t>(i)];
      check(before >= 0 && after >= 0, "pad: ", before, " and ", after, " around dimension ", i,
            ", expected 0 or more");
      offsets[static_cast<size_t>(i)] = before;
      shape[i] += before + after;
    }
    Tensor y = filled(Shape(std::span(shape.begin(), shape.end())), value, x.options());
    kernels::insert(x, offsets, y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = Tensor::empty(x_shape, dy.options());
    kernels::extract(dy, offsets, dx);
    return {dx};
  }
};

struct ReflectionPad {
  kernels::Border border;
  Shape x_shape = {};

  Tensor forward(const Tensor& x) {
    x_shape = x.shape();
    const auto [top, bottom, left, right] = border;
    check(x.rank() >= 2, "reflection_pad2d: input of shape ", x_shape, ", expected [..., H, W]");
    const int64_t h = x_shape[-2], w = x_shape[-1];
    const auto fits = [](int64_t pad, int64_t extent) { return 0 <= pad && pad < extent; };
    check(fits(top, h) && fits(bottom, h) && fits(left, w) && fits(right, w), "reflection_pad2d: border of ", top, ", ",
          bottom, ", ", left, ", ", right, " around ", x_shape,
          ", expected top and bottom from 0 to below H, left and right from 0 to below W");
    Shape shape = x_shape;
    shape[-2] += top + bottom;
    shape[-1] += left + right;
    Tensor y = Tensor::empty(shape, {x.dtype(), x.device()});
    kernels::reflection_pad(in_format(x, MemoryFormat::row_major), border, y);
    return in_format(y, x.format());
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = Tensor::empty(x_shape, {dy.dtype(), dy.device()});
    kernels::reflection_pad_backward(in_format(dy, MemoryFormat::row_major), border, dx);
    return {dx};
  }
};

struct Convert {
  DType dtype, x_dtype = dtype;

  static Tensor as(const Tensor& x, DType dtype) {
    Tensor y = Tensor::empty(x.shape(), {dtype, x.device(), x.format()});
    kernels::convert(x, y);
    return y;
  }
  Tensor forward(const Tensor& x) {
    x_dtype = x.dtype();
    return as(x, dtype);
  }
  Gradients backward(const Tensor& dy, const Needs&) const { return {as(dy, x_dtype)}; }
};

}  // namespace

Tensor in_format(Tensor x, MemoryFormat format) {
  if (x.format() == format) return x;
  if (x.rank() == 4 && (x.size(1) == 1 || x.size(2) * x.size(3) == 1)) return x.to(format);  // shares the elements
  Tensor y = Tensor::empty(x.shape(), {x.dtype(), x.device(), format});
  kernels::convert(x, y);
  return y;
}

Tensor widened(const Tensor& x) { return Convert::as(x, parameter_dtype(x.dtype())); }

Variable reshape(const Variable& x, std::initializer_list<int64_t> extents) {
  return apply(Reshape{.extents = extents, .x_shape = {}}, x);
}
Variable reshape(const Variable& x, const Shape& shape) {
  return apply(Reshape{.extents = {shape.begin(), shape.end()}, .x_shape = {}}, x);
}
Tensor filled(const Shape& shape, double value, const TensorOptions& options) {
  Tensor tensor = Tensor::empty(shape, options);
  kernels::fill(tensor, value);
  return tensor;
}
int place_of(const char* operation, const Shape& shape, int dimension) {
  check(-shape.rank() <= dimension && dimension < shape.rank(), operation, ": dimension ", dimension, " of ", shape,
        " does not exist");
  return shape.normalize(dimension);
}
Variable with_a_batch(const Variable& x, const std::function<Variable(const Variable&)>& f) {
  return x.shape().rank() == 3 ? squeeze(f(unsqueeze(x, 0)), 0) : f(x);
}
Variable with_a_dimension(const Variable& x, const std::function<Variable(const Variable&)>& f) {
  return x.shape().rank() == 0 ? reshape(f(reshape(x, {1})), Shape()) : f(x);
}
Variable squeeze(const Variable& x, int dimension) {
  if (x.shape().rank() == 0 && (dimension == 0 || dimension == -1)) return x;
  std::vector<int64_t> extents(x.shape().begin(), x.shape().end());
  const int place = place_of("squeeze", x.shape(), dimension);
  check(x.shape()[place] == 1, "squeeze: dimension ", place, " of ", x.shape(), " has extent ", x.shape()[place],
        ", expected 1");
  extents.erase(extents.begin() + place);
  return reshape(x, Shape(extents));
}
Variable unsqueeze(const Variable& x, int dimension) {
  std::vector<int64_t> extents(x.shape().begin(), x.shape().end());
  const int rank = x.shape().rank() + 1, place = dimension < 0 ? dimension + rank : dimension;
  check(0 <= place && place < rank, "unsqueeze: dimension ", dimension, " of a result with ", rank,
        " dimensions, expected ", -rank, " to ", rank - 1);
  extents.insert(extents.begin() + place, 1);
  return reshape(x, Shape(extents));
}
Variable expand(const Variable& x, const std::vector<int64_t>& extents) { return apply(Expand{.extents = extents}, x); }
Variable flatten(const Variable& x) {
  check(x.shape().rank() > 0, "flatten: shape [], expected [N, ...]");
  return reshape(x, {x.shape()[0], x.shape().numel_from(1)});
}
Variable permute(const Variable& x, const std::vector<int>& order) {
  const Shape& shape = x.shape();
  kernels::Order places{};
  std::vector<bool> taken(static_cast<size_t>(shape.rank()));
  bool fits = order.size() == taken.size();
  for (size_t i = 0; i < order.size() && fits; ++i) {
    const auto place = static_cast<size_t>(places[i] = place_of("permute", shape, order[i]));
    fits = !taken[place];
    taken[place] = true;
  }
  check(fits, "permute: ", order.size(), " dimensions for shape ", shape, ", expected each of its dimensions once");
  return apply(Permute{places}, x);
}
Variable transpose(const Variable& x, int first, int second) {
  return with_a_dimension(x, [=](const Variable& tensor) {
    const auto place = [&](int dimension) {
      return static_cast<size_t>(place_of("transpose", tensor.shape(), dimension));
    };
    kernels::Order order = kernels::kInOrder;
    std::swap(order[place(first)], order[place(second)]);
    return apply(Permute{order}, tensor);
  });
}
Variable concat(std::span<const Variable> inputs, int dimension) {
  const auto none = [](const Variable& x) { return x.shape() == Shape{0}; };
  const auto is_vector = [](const Variable& x) { return x.shape().rank() == 1; };
  std::vector<Variable> parts;
  if (!std::ranges::all_of(inputs, is_vector)) std::ranges::remove_copy_if(inputs, std::back_inserter(parts), none);
  std::span<const Variable> rest = parts.empty() ? inputs : std::span<const Variable>(parts);
  const bool records = gradient_enabled() && std::ranges::any_of(rest, &Variable::requires_gradient);
  if (!records || rest.size() <= Needs::kMaxInputs)
    return apply_list(Concat{.dimension = dimension, .shapes = {}}, rest);
  std::vector<Variable> joined;
  while (!rest.empty()) {
    const auto some = rest.first(std::min(rest.size(), Needs::kMaxInputs));
    joined.push_back(concat(some, dimension));
    rest = rest.subspan(some.size());
  }
  return concat(joined, dimension);
}
Variable concat(std::initializer_list<Variable> inputs, int dimension) {
  return concat(std::span(inputs.begin(), inputs.size()), dimension);
}
Variable stack(std::span<const Variable> inputs, int dimension) {
  std::vector<Variable> same;
  for (const Variable& x : inputs) {
    check(x.shape() == inputs.front().shape(), "stack: ", x.shape(), " beside ", inputs.front().shape(),
          ", expected one shape");
    same.push_back(unsqueeze(x, dimension));
  }
  return concat(same, dimension);
}
Variable stack(std::initializer_list<Variable> inputs, int dimension) {
  return stack(std::span(inputs.begin(), inputs.size()), dimension);
}
std::vector<Variable> split(const Variable& x, const std::vector<int64_t>& extents, int dimension) {
  return apply(Split{.extents = extents, .dimension = dimension}, x);
}
Variable slice(const Variable& x, int dimension, int64_t begin, int64_t end) {
  return apply(Slice{.dimension = dimension, .begin = begin, .end = end, .x_shape = {}}, x);
}
Variable pad(const Variable& x, const std::vector<Padding>& padding, double value) {
  const bool fits = padding.size() == static_cast<size_t>(x.shape().rank());
  Variable cropped = x;
  std::vector<Padding> around = padding;
  for (size_t i = 0; i < around.size() && fits; ++i) {
    const int64_t extent = x.shape()[static_cast<int>(i)];
    auto& [before, after] = around[i];
    constexpr int64_t kMost = int64_t{1} << 48;  // the elements of the largest tensor
    check(std::min(before, after) >= -kMost && std::max(before, after) <= kMost, "pad: ", before, " and ", after,
          " around dimension ", i, " of ", x.shape(), ", expected -2^48 to 2^48");
    if (before >= 0 && after >= 0) continue;
    const int64_t begin = std::max<int64_t>(0, -before), end = extent - std::max<int64_t>(0, -after);
    check(begin <= end, "pad: ", before, " and ", after, " around dimension ", i, " of ", x.shape(),
          ", expected to take away no more than it has");
    cropped = slice(cropped, static_cast<int>(i), begin, end);
    before = std::max<int64_t>(0, before);
    after = std::max<int64_t>(0, after);
  }
  return apply(Pad{.padding = around, .value = value, .x_shape = {}}, cropped);
}
Variable reflection_pad2d(const Variable& x, const Border& border) {
  const auto [top, bottom, left, right] = border;
  if (std::min({top, bottom, left, right}) >= 0) return apply(ReflectionPad{.border = border}, x);
  // The mirror sees all of x, so what goes away goes last.
  const auto added = [](int64_t n) { return std::max<int64_t>(0, n); };
  const Variable y = reflection_pad2d(x, {added(top), added(bottom), added(left), added(right)});
  std::vector<Padding> cut(static_cast<size_t>(y.shape().rank()));
  cut[cut.size() - 2] = {std::min<int64_t>(0, top), std::min<int64_t>(0, bottom)};
  cut[cut.size() - 1] = {std::min<int64_t>(0, left), std::min<int64_t>(0, right)};
  return pad(y, cut);
}
Variable convert(const Variable& x, DType dtype) {
  check(is_floating(dtype) && is_floating(x.value().dtype()), "convert: ", x.value().dtype(), " to ", dtype,
        ", expected floating dtypes");
  if (dtype == x.value().dtype()) return x;
  return apply(Convert{.dtype = dtype}, x);
}

}  // namespace tern
