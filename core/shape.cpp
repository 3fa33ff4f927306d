#include "tern/core/shape.h"

#include <algorithm>

#include "tern/core/error.h"

namespace tern {

Shape::Shape(std::initializer_list<int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  check(rank_ <= kMaxRank, "shape: ", rank_, " dimensions, at most ", kMaxRank, " are supported");
  for (int64_t extent : extents) check(extent >= 0, "shape: extent ", extent, " is negative");
  std::copy(extents.begin(), extents.end(), extents_.begin());
  int64_t elements = 1;
  for (int64_t extent : extents) {
    check(extent <= kMostElements / elements, "shape: ", *this, " has more than 2^48 elements");
    elements *= std::max<int64_t>(extent, 1);
  }
}

int64_t Shape::numel() const { return numel_from(0); }

int64_t Shape::numel_from(int dimension) const {
  int64_t product = 1;
  for (int i = dimension; i < rank_; ++i) product *= extents_[i];
  return product;
}

int Shape::normalize(int dimension) const {
  const int index = dimension < 0 ? dimension + rank_ : dimension;
  check(index >= 0 && index < rank_, "shape: dimension ", dimension, " of ", *this, " does not exist");
  return index;
}

bool operator==(const Shape& a, const Shape& b) { return std::ranges::equal(a, b); }

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Shape broadcast(const Shape& a, const Shape& b, const char* operation) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  for (int i = 1; i <= shorter.rank(); ++i) {
    const int64_t m = longer[-i], n = shorter[-i];
    check(m == n || m == 1 || n == 1, operation, ": shapes ", a, " and ", b, " do not broadcast");
    result[-i] = m == 1 ? n : m;
  }
  return result;
}

}  // namespace tern
