#include "tern/autograd/functional.h"

#include <optional>

#include "tern/autograd/operation.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/reduction.h"

namespace tern {
namespace {

/// For each dimension of `shape`, whether it is among `dimensions`. All are if `dimensions` is empty.
std::vector<bool> which_are_reduced(const char* operation, const Shape& shape, const std::vector<int>& dimensions) {
  std::vector<bool> reduced(static_cast<size_t>(shape.rank()), dimensions.empty());
  for (const int dimension : dimensions) {
    const auto place = static_cast<size_t>(place_of(operation, shape, dimension));
    check(!reduced[place], operation, ": dimension ", place, " of ", shape, " is given twice");
    reduced[place] = true;
  }
  return reduced;
}

/// `shape` after a reduction: without the reduced dimensions, or with extent 1 if they are kept.
Shape reduced_shape(const Shape& shape, const std::vector<bool>& reduced, bool keep) {
  std::vector<int64_t> extents;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!reduced[static_cast<size_t>(i)])
      extents.push_back(shape[i]);
    else if (keep)
      extents.push_back(1);
  }
  return Shape(extents);
}

/// The number of elements of each result.
int64_t reduced_count(const Shape& shape, const std::vector<bool>& reduced) {
  int64_t count = 1;
  for (int i = 0; i < shape.rank(); ++i)
    if (reduced[static_cast<size_t>(i)]) count *= shape[i];
  return count;
}

struct Sum {
  std::vector<int> dimensions;
  bool keep, mean;
  double factor = 1;
  Shape x_shape = {}, kept = {};
  TensorOptions x_options = {};

  Tensor forward(const Tensor& x) {
    x_shape = x.shape();
    x_options = x.options();
    const char* const operation = mean ? "mean" : "sum";
    check(is_floating(x.dtype()), operation, ": elements are ", x.dtype(), ", expected f32, f64 or bf16");
    const std::vector<bool> summed = which_are_reduced(operation, x_shape, dimensions);
    const int64_t count = reduced_count(x_shape, summed);
    kept = reduced_shape(x_shape, summed, true);
    check(!mean || count != 0, "mean: input of shape ", x.shape(),
          ", each mean is of no elements, expected one or more");
    if (mean) factor = 1 / static_cast<double>(count);
    Tensor y = Tensor::empty(kept, {x.dtype(), x.device()});
    kernels::sum(x, factor, y);
    return keep ? y : y.reshape(reduced_shape(x_shape, summed, false));
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = Tensor::empty(x_shape, x_options);
    kernels::broadcast_to(in_format(dy, MemoryFormat::row_major).reshape(kept), factor, dx);
    return {dx};
  }
};

/// A tensor as a matrix that has the elements of each result in one row. The reduced dimensions become the last ones.
class RowsOf {
 public:
  RowsOf(const char* operation, const Tensor& x, const std::vector<int>& dimensions)
      : options_(x.options()), x_(x.shape()), reduced_(which_are_reduced(operation, x_, dimensions)) {
    int place = 0;
    for (const bool wanted : {false, true})
      for (int d = 0; d < x_.rank(); ++d) {
        if (reduced_[static_cast<size_t>(d)] != wanted) continue;
        in_order_ = in_order_ && place == d;
        (wanted ? columns_ : rows_) *= x_[d];
        permuted_[place] = x_[d];
        order_[static_cast<size_t>(place)] = d;
        back_[static_cast<size_t>(d)] = place++;
      }
    check(columns_ != 0 || rows_ == 0, operation, ": input of shape ", x_,
          ", each result is of no elements, expected one or more");
  }

  Tensor rows(const Tensor& x) const {
    Tensor same = in_format(x, MemoryFormat::row_major);
    if (!in_order_) same = permuted(same, order_, permuted_);
    return same.reshape({rows_, columns_});
  }
  /// The inverse of `rows`, in row-major order.
  Tensor back(const Tensor& rows) const {
    const Tensor same = rows.reshape(permuted_);
    return in_order_ ? same : permuted(same, back_, x_);
  }
  /// One value for each row, uninitialised.
  Tensor results(DType dtype) const { return Tensor::empty({rows_}, {dtype, options_.device}); }
  Shape result_shape(bool keep) const { return reduced_shape(x_, reduced_, keep); }
  /// dy, of any shape with one value for each row, as a column.
  Tensor column(const Tensor& dy) const { return in_format(dy, MemoryFormat::row_major).reshape({rows_, 1}); }

 private:
  static Tensor permuted(const Tensor& x, const kernels::Order& order, const Shape& shape) {
    Tensor y = Tensor::empty(shape, {x.dtype(), x.device()});
    kernels::permute(x, order, y);
    return y;
  }

  TensorOptions options_;
  Shape x_, permuted_ = x_;
  std::vector<bool> reduced_;
  kernels::Order order_{}, back_{};
  bool in_order_ = true;
  int64_t rows_ = 1, columns_ = 1;
};

/// max, or min with `least`.
struct Extremum {
  bool least;
  std::vector<int> dimensions;
  bool keep;
  std::optional<RowsOf> view;
  Saved x, y;

  std::string name() const { return least ? "min" : "max"; }
  Tensor forward(const Tensor& input) {
    view.emplace(least ? "min" : "max", input, dimensions);
    const Tensor rows = view->rows(input);
    Tensor result = view->results(input.dtype());
    if (least)
      kernels::row_min(rows, result);
    else
      kernels::row_max(rows, result);
    x = rows;
    y = result;
    return result.reshape(view->result_shape(keep));
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    const Tensor column = view->column(y);
    Tensor hits = x.empty_like(), count = Tensor::empty_like(column), share = Tensor::empty_like(column);
    kernels::equal(x, column, hits);
    kernels::sum(hits, 1, count);
    kernels::divide(view->column(dy), count, share);
    kernels::multiply(hits, share, hits);
    return {view->back(hits)};
  }
};

struct LogSumExp {
  std::vector<int> dimensions;
  bool keep;
  std::optional<RowsOf> view;
  Saved x, y;

  static std::string name() { return "logsumexp"; }
  Tensor forward(const Tensor& input) {
    view.emplace("logsumexp", input, dimensions);
    const Tensor rows = view->rows(input);
    Tensor result = view->results(input.dtype());
    kernels::row_logsumexp(rows, result);
    x = rows;
    y = result;
    return result.reshape(view->result_shape(keep));
  }
  /// dx = dy · exp(x - y)
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = x.empty_like();
    kernels::subtract(x, view->column(y), dx);
    kernels::exp(dx, dx);
    kernels::multiply(dx, view->column(dy), dx);
    return {view->back(dx)};
  }
};

Variable extremum(const Variable& x, const std::vector<int>& dimensions, bool keep, bool least) {
  return with_a_dimension(x, [&](const Variable& values) {
    return apply(Extremum{.least = least, .dimensions = dimensions, .keep = keep, .view = {}, .x = {}, .y = {}},
                 values);
  });
}

}  // namespace

Variable sum(const Variable& x, const std::vector<int>& dimensions, bool keep) {
  return with_a_dimension(x, [&](const Variable& values) {
    return apply(Sum{.dimensions = dimensions, .keep = keep, .mean = false}, values);
  });
}
Variable mean(const Variable& x, const std::vector<int>& dimensions, bool keep) {
  return with_a_dimension(x, [&](const Variable& values) {
    return apply(Sum{.dimensions = dimensions, .keep = keep, .mean = true}, values);
  });
}

Variable max(const Variable& x, const std::vector<int>& dimensions, bool keep) {
  return extremum(x, dimensions, keep, false);
}
Variable min(const Variable& x, const std::vector<int>& dimensions, bool keep) {
  return extremum(x, dimensions, keep, true);
}
Tensor argmax(const Tensor& x, int dimension, bool keep) {
  if (x.rank() == 0) return argmax(x.reshape({1}), dimension);
  const RowsOf view("argmax", x, {dimension});
  Tensor y = view.results(DType::i64);
  kernels::row_argmax(view.rows(x), y);
  return y.reshape(view.result_shape(keep));
}
Variable logsumexp(const Variable& x, const std::vector<int>& dimensions, bool keep) {
  return with_a_dimension(x, [&](const Variable& values) {
    return apply(LogSumExp{.dimensions = dimensions, .keep = keep, .view = {}, .x = {}, .y = {}}, values);
  });
}
Variable variance(const Variable& x, const std::vector<int>& dimensions, bool keep, int correction) {
  return with_a_dimension(x, [&](const Variable& elements) {
    const DType dtype = elements.value().dtype(), wide = parameter_dtype(dtype);
    const Variable values = convert(elements, wide), deviation = values - mean(values, dimensions, true);
    const int64_t count = reduced_count(values.shape(), which_are_reduced("variance", values.shape(), dimensions));
    check(count > correction, "variance: input of shape ", x.shape(), ", each result is of ", count,
          " elements, expected more than the correction, ", correction);
    return convert(sum(deviation * deviation, dimensions, keep) / static_cast<double>(count - correction), dtype);
  });
}

Tensor sum_to(const Tensor& dy, const Shape& shape, double scale) {
  if (shape == dy.shape()) {
    if (scale == 1) return dy;
    Tensor dx = Tensor::empty_like(dy);
    kernels::scale(dy, scale, dx);
    return dx;
  }
  std::vector<int64_t> aligned(static_cast<size_t>(dy.rank() - shape.rank()), 1);
  aligned.insert(aligned.end(), shape.begin(), shape.end());
  Tensor dx = Tensor::empty(Shape(aligned), {dy.dtype(), dy.device()});
  kernels::sum(dy, scale, dx);
  return dx.reshape(shape);
}

}  // namespace tern
