#include "tern/kernels/transform_images.h"

#include <algorithm>
#include <cmath>

#include "tern/core/error.h"
#include "tern/kernels/cuda/launch.h"

// The same arithmetic as in data/transforms.cpp: exact integer sums, then f64 that is rounded once. This file is
// compiled without fused multiply-add, so that the bits are the same.

namespace tern::cuda {
namespace {

constexpr int kChannels = kernels::kMostImageChannels;

struct ImagePlan {
  int height, width, out_height, out_width, channels, out_channels, pad, cutout;
  bool reflect_pad, standardize;
  bool planes;                                   ///< the images are row-major
  double mean[kChannels], deviation[kChannels];  ///< for a full scale of 1
};

/// scale·x + shift
struct Affine {
  double scale, shift;
};

/// The crop of one image, for reading bytes. Padding reads as 0, or as the mirror image.
struct Crop {
  /// Element `at` of the output, in storage order.
  __device__ int operator()(int at) const {
    const int pixel = at / plan.channels, c = at % plan.channels;
    const int y = pixel / plan.out_width, place = pixel % plan.out_width;
    const int x = flip ? plan.out_width - 1 - place : place;
    if (area_height > 0) return resized(y, x, c);
    int row = y + top, column = x + left;
    if (plan.reflect_pad) {
      row = static_cast<int>(mirrored(row, plan.height));
      column = static_cast<int>(mirrored(column, plan.width));
    }
    const bool inside = 0 <= row && row < plan.height && 0 <= column && column < plan.width;
    return inside ? image[(row * plan.width + column) * plan.channels + c] : 0;
  }

  /// Bilinear interpolation in whole numbers, as `resized_area` of data/transforms.cpp.
  __device__ int resized(int y, int x, int c) const {
    const int64_t row = place(y, area_height, plan.out_height), column = place(x, area_width, plan.out_width);
    const int64_t fy = row % kOne, fx = column % kOne, y0 = row / kOne, x0 = column / kOne;
    const int64_t y1 = y0 + 1 < area_height ? y0 + 1 : y0, x1 = x0 + 1 < area_width ? x0 + 1 : x0;
    const int64_t above = at(y0, x0, c) * (kOne - fx) + at(y0, x1, c) * fx,
                  below = at(y1, x0, c) * (kOne - fx) + at(y1, x1, c) * fx;
    return static_cast<int>((above * (kOne - fy) + below * fy + kOne * kOne / 2) / (kOne * kOne));
  }
  __device__ static int64_t place(int64_t i, int64_t from, int64_t to) {
    const int64_t middle = (2 * i + 1) * from * kOne / (2 * to) - kOne / 2, last = (from - 1) * kOne;
    return middle < 0 ? 0 : middle > last ? last : middle;
  }
  __device__ int64_t at(int64_t y, int64_t x, int c) const {
    return image[((top + y) * plan.width + left + x) * plan.channels + c];
  }

  static constexpr int64_t kOne = 1 << 11;
  const ImagePlan& plan;
  const uint8_t* image;
  int top, left;
  bool flip;
  int area_height, area_width;
};

__device__ Crop crop_of(const ImagePlan& plan, const uint8_t* image, const double* draw) {
  return {.plan = plan,
          .image = image,
          .top = static_cast<int>(draw[0]) - plan.pad,
          .left = static_cast<int>(draw[1]) - plan.pad,
          .flip = draw[2] != 0,
          .area_height = static_cast<int>(draw[6]),
          .area_width = static_cast<int>(draw[7])};
}

/// Finds the maps from the sums of each channel, in the same way as `lookup_table` of data/transforms.cpp.
__device__ void find_maps(const ImagePlan& plan, const double* draw, const int64_t* values, const int64_t* squares,
                          Affine* maps) {
  const double area = double(plan.out_height) * plan.out_width, contrast = draw[4];
  for (int c = 0; c < plan.channels; ++c)
    maps[c] = {contrast, 255.0 * draw[3] + (1 - contrast) * (double(values[c]) / area)};
  if (!plan.standardize) {
    for (int c = 0; c < plan.channels; ++c) {
      const double mean = 255.0 * plan.mean[c], deviation = 255.0 * plan.deviation[c];
      maps[c] = {maps[c].scale / deviation, (maps[c].shift - mean) / deviation};
    }
    return;
  }
  const double n = area * plan.channels;
  double mean = 0, distances = 0;
  for (int c = 0; c < plan.channels; ++c) mean += (maps[c].scale * double(values[c]) + maps[c].shift * area) / n;
  for (int c = 0; c < plan.channels; ++c) {
    const double own = double(values[c]) / area, variance = double(squares[c]) / area - own * own;
    const double distance = maps[c].scale * own + maps[c].shift - mean;
    distances += area * (maps[c].scale * maps[c].scale * variance + distance * distance);
  }
  const double deviation = std::max(sqrt(std::max(distances, 0.0) / n), 1 / sqrt(n));
  for (int c = 0; c < plan.channels; ++c) maps[c] = {maps[c].scale / deviation, (maps[c].shift - mean) / deviation};
}

/// Element `at` of the image with its brightness and contrast.
__device__ float adjusted(const ImagePlan& plan, const Affine* maps, const Crop& crop, int at) {
  const Affine& map = maps[at % plan.channels];
  return static_cast<float>(map.scale * crop(at) + map.shift);
}

/// The same with its saturation, as `saturate` of data/transforms.cpp.
__device__ float saturated(const ImagePlan& plan, const Affine* maps, const Crop& crop, double saturation, int at) {
  const int own = at % 3;
  double value[3];
  for (int c = 0; c < 3; ++c) value[c] = adjusted(plan, maps, crop, at - own + c) * plan.deviation[c] + plan.mean[c];
  const double grey = 0.299 * value[0] + 0.587 * value[1] + 0.114 * value[2];
  return static_cast<float>((grey + saturation * (value[own] - grey) - plan.mean[own]) / plan.deviation[own]);
}

/// One block per image.
template <class T>
__global__ void transform_kernel(const __grid_constant__ ImagePlan plan, const uint8_t* pixels, const int64_t* rows,
                                 const double* draws, T* images) {
  __shared__ Affine maps[kChannels];
  __shared__ int64_t values[kChannels], squares[kChannels];  // used by the first thread: registers cannot be indexed
  const int64_t n = blockIdx.x, row = rows != nullptr ? rows[n] : n;
  const int count = plan.out_height * plan.out_width * plan.channels;
  const double* draw = draws + n * kernels::kImageDraws;
  const Crop crop = crop_of(plan, pixels + row * plan.height * plan.width * plan.channels, draw);
  const bool sums_matter = plan.standardize || draw[4] != 1;
  for (int c = 0; c < plan.channels; ++c) {
    int64_t sum = 0, square_sum = 0;
    if (sums_matter) {
      for (int at = static_cast<int>(threadIdx.x) * plan.channels + c; at < count; at += kThreads * plan.channels) {
        const int64_t value = crop(at);
        sum += value;
        square_sum += value * value;
      }
      sum = fold_group<kThreads>(sum, Sum{});
      square_sum = fold_group<kThreads>(square_sum, Sum{});
    }
    if (threadIdx.x == 0) {
      values[c] = sum;
      squares[c] = square_sum;
    }
  }
  if (threadIdx.x == 0) find_maps(plan, draw, values, squares, maps);
  __syncthreads();
  const int cut_top = static_cast<int>(draw[8]), cut_left = static_cast<int>(draw[9]);
  const int area = plan.out_height * plan.out_width, written = area * plan.out_channels;
  for (int i = static_cast<int>(threadIdx.x); i < written; i += kThreads) {
    const int pixel = plan.planes ? i % area : i / plan.out_channels,
              c = plan.planes ? i / area : i % plan.out_channels, at = pixel * plan.channels + c,
              y = pixel / plan.out_width - cut_top, x = pixel % plan.out_width - cut_left;
    const bool is_cut = c >= plan.channels || (0 <= y && y < plan.cutout && 0 <= x && x < plan.cutout);
    images[n * written + i] = static_cast<T>(is_cut         ? 0.0f
                                             : draw[5] != 1 ? saturated(plan, maps, crop, draw[5], at)
                                                            : adjusted(plan, maps, crop, at));
  }
}

}  // namespace
}  // namespace tern::cuda

namespace tern::kernels {

void transform_images(const Tensor& pixels, const Tensor& rows, const Tensor& draws, const ImageMap& map,
                      Tensor& images) {
  const int64_t n = images.size(0), channels = pixels.size(1);
  check(pixels.format() == MemoryFormat::channels_last && images.size(1) >= channels && channels <= kMostImageChannels,
        "transform_images: ", pixels.shape(), " ", pixels.format(), " to ", images.shape(),
        ", expected pixels in channels_last and at most ", kMostImageChannels, " channels");
  check((rows.defined() ? rows.shape() == Shape{n} : pixels.size(0) == n) && draws.shape() == Shape{n, kImageDraws},
        "transform_images: pixels ", pixels.shape(), ", rows ", rows.shape(), " and draws ", draws.shape(), " for ",
        images.shape());
  cuda::ImagePlan plan{.height = static_cast<int>(pixels.size(2)),
                       .width = static_cast<int>(pixels.size(3)),
                       .out_height = static_cast<int>(images.size(2)),
                       .out_width = static_cast<int>(images.size(3)),
                       .channels = static_cast<int>(channels),
                       .out_channels = static_cast<int>(images.size(1)),
                       .pad = static_cast<int>(map.pad),
                       .cutout = static_cast<int>(map.cutout),
                       .reflect_pad = map.reflect_pad,
                       .standardize = map.standardize,
                       .planes = images.format() == MemoryFormat::row_major,
                       .mean = {},
                       .deviation = {}};
  const auto of_channel = [](const std::vector<float>& values, size_t c) {
    return static_cast<double>(values.at(values.size() == 1 ? 0 : c));
  };
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    plan.mean[c] = of_channel(map.mean, c);
    plan.deviation[c] = of_channel(map.deviation, c);
  }
  cuda::visit_fast(images.dtype(), "transform_images", [&]<class T>(T) {
    cuda::launch("transform_images", images.device(), {.blocks = dim3(static_cast<unsigned>(n))},
                 cuda::transform_kernel<T>, plan, static_cast<const uint8_t*>(pixels.data<uint8_t>()),
                 static_cast<const int64_t*>(rows.defined() ? rows.data<int64_t>() : nullptr),
                 static_cast<const double*>(draws.data<double>()), images.data<T>());
  });
}

}  // namespace tern::kernels
