#include "tern/kernels/cuda/summation.h"

#include <vector>

namespace tern::cuda {
namespace {

constexpr int64_t kMostBatch = 65535;  // the third extent of a grid
constexpr std::array<int, Shape::kMaxRank> kInOrder = {0, 1, 2, 3, 4, 5};

/// Some dimensions of a nest as a nest of their own, for the first `Arrays` arrays.
template <int Arrays>
kernels::LoopNest<Arrays> dimensions_of(const kernels::LoopNest<2>& nest, bool summed) {
  std::vector<int64_t> extents;
  std::array<kernels::Strides, Arrays> steps{};
  for (int d = 0; d < nest.depth; ++d) {
    if ((nest.step[1][d] == 0) != summed) continue;
    for (int a = 0; a < Arrays; ++a) steps[a][extents.size()] = nest.step[a][d];
    extents.push_back(nest.extent[d]);
  }
  return {Shape(extents), kInOrder, steps};
}

kernels::LoopNest<2> nest_of(const Tensor& x, const Tensor& y) {
  return {x.shape(), kernels::storage_order(x), {kernels::strides_in(x, x.shape()), kernels::strides_in(y, x.shape())}};
}

}  // namespace

Summation::Summation(const char* operation, const Tensor& x, const Tensor& y)
    : kept(dimensions_of<2>(nest_of(x, y), false), operation),
      summed(dimensions_of<1>(nest_of(x, y), true), operation) {
  const auto nest = nest_of(x, y);
  const auto keeps = [&](int d) { return nest.step[1][d] != 0; };
  const int last = nest.depth - 1;
  width = nest.extent[last];
  rows = last >= 1 ? nest.extent[last - 1] : 1;
  batch = last >= 2 ? nest.extent[0] : 1;
  columns = batch <= kMostBatch && keeps(last) && nest.step[1][last] == 1 && last <= 2 &&
            (last < 1 || !keeps(last - 1)) && (last < 2 || (keeps(0) && nest.step[1][0] == width));
}

Summation Summation::per_channel(const char* operation, const Tensor& x) {
  Shape channels = x.shape();
  for (int d = 0; d < x.rank(); ++d)
    if (d != 1) channels[d] = 1;
  // Only the strides of the sums are read.
  return {operation, x, Tensor::empty(channels)};
}

Parts cut(int64_t summed, int64_t per_pass) {
  constexpr int64_t kPasses = 8, kMostParts = 512;
  const int64_t count = std::clamp<int64_t>(summed / (per_pass * kPasses), 1, kMostParts);
  return {static_cast<int>(count), (summed + count - 1) / count};
}

}  // namespace tern::cuda
