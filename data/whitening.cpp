#include "tern/data/whitening.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tern/core/error.h"

namespace tern {
namespace {

/// A square matrix, row-major.
struct Matrix {
  explicit Matrix(size_t n) : size(n), elements(n * n) {}
  double& operator()(size_t row, size_t column) { return elements[row * size + column]; }
  double operator()(size_t row, size_t column) const { return elements[row * size + column]; }

  size_t size;
  std::vector<double> elements;
};

/// Adds p pᵀ to `moments` for each patch p of the image [h, w, C]. A patch's elements are in the order C, y, x.
void add_moments(const ImageSpec& size, int64_t extent, std::span<const float> image, Matrix& moments) {
  std::vector<double> patch(moments.size);
  for (int64_t top = 0; top + extent <= size.height; ++top)
    for (int64_t left = 0; left + extent <= size.width; ++left) {
      size_t at = 0;
      for (int64_t c = 0; c < size.channels; ++c)
        for (int64_t y = top; y < top + extent; ++y)
          for (int64_t x = left; x < left + extent; ++x)
            patch[at++] = image[static_cast<size_t>((y * size.width + x) * size.channels + c)];
      for (size_t i = 0; i < patch.size(); ++i)
        for (size_t j = 0; j <= i; ++j) moments(i, j) += patch[i] * patch[j];
    }
}

/// Makes the element (p, q) of the symmetric `a` zero by a rotation, and rotates the columns of `vectors` with it.
void rotate(Matrix& a, Matrix& vectors, size_t p, size_t q) {
  // Square roots and quotients are the same on every machine; angles are not.
  const double ratio = (a(q, q) - a(p, p)) / (2 * a(p, q)),
               t = std::copysign(1 / (std::abs(ratio) + std::sqrt(1 + ratio * ratio)), ratio),
               c = 1 / std::sqrt(1 + t * t), s = t * c;
  const auto turn = [=](double& first, double& second) {
    const double old = first;
    first = c * old - s * second;
    second = s * old + c * second;
  };
  for (size_t k = 0; k < a.size; ++k) turn(a(k, p), a(k, q));
  for (size_t k = 0; k < a.size; ++k) turn(a(p, k), a(q, k));
  for (size_t k = 0; k < a.size; ++k) turn(vectors(k, p), vectors(k, q));
}

/// Jacobi's method: turns the symmetric `a` into a diagonal matrix of its eigenvalues. Returns the eigenvectors as
/// columns.
Matrix diagonalize(Matrix& a) {
  constexpr int kSweeps = 30;  // each about squares what is left off the diagonal
  Matrix vectors(a.size);
  for (size_t i = 0; i < a.size; ++i) vectors(i, i) = 1;
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (size_t p = 0; p < a.size; ++p)
      for (size_t q = p + 1; q < a.size; ++q)
        if (a(p, q) != 0) rotate(a, vectors, p, q);
  return vectors;
}

}  // namespace

Tensor whitening_filters(const ImageDataset& images, const Transform& transform, const WhiteningOptions& options) {
  const Transform plain = transform.for_evaluation();
  const ImageSpec spec = images.spec(), size = plain.output(spec);
  const int64_t extent = options.extent, n = size.channels * extent * extent;
  check_input(options.images >= 1 && images.size() >= 1, "whitening: ", options.images, " of ", images.size(),
              " images, expected 1 or more");
  check_input(extent >= 1 && extent <= size.height && extent <= size.width, "whitening: patches of ", extent, "x",
              extent, " in images of ", size.height, "x", size.width);
  Matrix moments(static_cast<size_t>(n));
  std::vector<uint8_t> pixels(static_cast<size_t>(spec.numel()));
  std::vector<float> image(static_cast<size_t>(size.numel()));
  const int64_t count = std::min(options.images, images.size());
  for (int64_t i = 0; i < count; ++i) {
    images.read(i, pixels);
    plain.apply(spec, plain.draw(spec, 0, 0, i), pixels, image);
    add_moments(size, extent, image, moments);
  }
  const auto patches = static_cast<double>(count * (size.height - extent + 1) * (size.width - extent + 1));
  for (size_t i = 0; i < moments.size; ++i)
    for (size_t j = 0; j <= i; ++j) moments(i, j) = moments(j, i) = moments(i, j) / patches;
  const Matrix vectors = diagonalize(moments);

  std::vector<size_t> order(moments.size);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t i, size_t j) { return moments(i, i) > moments(j, j); });
  const Tensor filters = Tensor::empty({2 * n, size.channels, extent, extent});
  float* to = filters.data<float>();
  for (const double sign : {1.0, -1.0})
    for (const size_t k : order)
      for (size_t i = 0; i < moments.size; ++i)
        *to++ = static_cast<float>(sign * vectors(i, k) / std::sqrt(moments(k, k) + options.epsilon));
  return filters;
}

}  // namespace tern
