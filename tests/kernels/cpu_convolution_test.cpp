#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "tern/core/parallel.h"
#include "tern/core/random.h"
#include "tern/kernels/cpu/convolution.h"
#include "tern/kernels/cpu/vector.h"
#include "tern/kernels/libraries.h"

namespace tern {
namespace {

using kernels::ConvGeometry;

struct Case {
  std::string name;
  Shape x, w;
  ConvGeometry geometry;
};

std::vector<Case> cases() {
  return {
      {"Lenet1", {3, 1, 28, 28}, {20, 1, 5, 5}, {.padding = 2}},
      {"Lenet2", {3, 20, 14, 14}, {50, 20, 5, 5}, {.padding = 2}},
      {"Lenet2Valid", {2, 20, 12, 12}, {50, 20, 5, 5}, {}},
      {"Stem", {2, 3, 16, 16}, {64, 3, 3, 3}, {.padding = 1}},
      {"Square64", {5, 64, 8, 8}, {64, 64, 3, 3}, {.padding = 1}},
      {"Wide512", {1, 512, 4, 4}, {512, 512, 3, 3}, {.padding = 1}},
      {"RaggedTiles", {2, 19, 7, 9}, {33, 19, 3, 3}, {.padding = 1}},
      {"OneImage", {1, 32, 13, 6}, {40, 32, 3, 3}, {.padding = {0, 1}}},
      {"FiveTaps", {2, 64, 12, 11}, {64, 64, 5, 5}, {.padding = 2}},
      {"FiveTapsWide", {2, 160, 6, 7}, {160, 160, 5, 5}, {.padding = 2}},
      {"FiveTapsSmall", {2, 33, 3, 2}, {19, 33, 5, 5}, {.padding = 4}},
      {"FiveTapsOnePixel", {3, 17, 5, 5}, {20, 17, 5, 5}, {}},
      {"Strided", {3, 16, 16, 16}, {32, 16, 3, 3}, {.stride = 2, .padding = 1}},
      {"StridedOdd", {2, 8, 15, 13}, {24, 8, 3, 3}, {.stride = {2, 3}, .padding = {1, 0}}},
      {"Shortcut", {2, 16, 8, 8}, {32, 16, 1, 1}, {.stride = 2}},
      {"Pointwise", {2, 24, 5, 7}, {17, 24, 1, 1}, {}},
      {"Alexnet1", {1, 3, 67, 67}, {64, 3, 11, 11}, {.stride = 4, .padding = 2}},
      {"Dilated", {2, 8, 12, 12}, {16, 8, 3, 3}, {.padding = 2, .dilation = 2}},
      {"DilatedStrided", {2, 6, 17, 14}, {10, 6, 3, 2}, {.stride = 2, .padding = {3, 1}, .dilation = {3, 2}}},
      {"Grouped", {2, 12, 9, 9}, {18, 4, 3, 3}, {.padding = 1, .groups = 3}},
      {"Depthwise", {2, 16, 8, 8}, {16, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 16}},
      {"DepthwiseBlocks", {3, 150, 9, 7}, {150, 1, 3, 5}, {.stride = {1, 2}, .padding = {1, 3}, .groups = 150}},
      {"DepthwiseDilated", {70, 64, 5, 6}, {64, 1, 2, 3}, {.padding = {2, 1}, .dilation = {3, 2}, .groups = 64}},
      {"WidePadding", {1, 4, 3, 3}, {5, 4, 3, 3}, {.stride = 2, .padding = 4}},
  };
}

Tensor random(const Shape& shape, uint32_t which) {
  const RandomStream stream({.seed = 7, .purpose = Purpose::test, .tensor = which});
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = stream.normal(i);
  return Tensor::from(shape, values);
}

/// |a - b| / |b| in the 2-norm.
double distance(const Tensor& a, const Tensor& b) {
  const auto found = a.to_vector<double>(), expected = b.to_vector<double>();
  double difference = 0, norm = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

constexpr double kTolerance = 1e-5;

class CpuConvolution : public testing::TestWithParam<Case> {
 protected:
  void TearDown() override { set_thread_count(threads_); }

  const ConvGeometry& geometry() const { return GetParam().geometry; }
  Shape output_shape() const { return kernels::conv2d_output_shape(GetParam().x, GetParam().w, geometry()); }
  /// Calls `compare(format)` in both formats, with one thread and with two. Does the same with the vectors of older
  /// processors.
  template <class Compare>
  void in_every_way(Compare compare) {
    for (const auto set : cpu::kVectorSets) {
      if (set >= cpu::vector_set()) break;
      SCOPED_TRACE("vector set " + std::to_string(static_cast<int>(set)));
      const cpu::NarrowerVectors narrower(set);
      compare(MemoryFormat::channels_last);
    }
    for (const MemoryFormat format : {MemoryFormat::channels_last, MemoryFormat::row_major}) {
      for (const int threads : {1, 2}) {
        SCOPED_TRACE(to_string(format) + ", threads: " + std::to_string(threads));
        set_thread_count(threads);
        compare(format);
      }
    }
  }
  static Tensor wide(const Tensor& tensor) { return tensor.to(DType::f64); }
  static Tensor wide(const Shape& shape) { return Tensor::empty(shape, {.dtype = DType::f64}); }

 private:
  int threads_ = thread_count();
};

TEST_P(CpuConvolution, Forward) {
  const Tensor x = random(GetParam().x, 1), w = random(GetParam().w, 2), bias = random({GetParam().w[0]}, 3);
  for (const bool relu : {false, true}) {
    Tensor expected = wide(output_shape());
    kernels::conv2d.on(Target::reference)(wide(x), wide(w), wide(bias), geometry(), relu, expected);
    in_every_way([&](MemoryFormat format) {
      Tensor y = Tensor::empty(output_shape(), {.format = format});
      kernels::conv2d.on(Target::cpu)(x.to(format), w, bias, geometry(), relu, y);
      EXPECT_LT(distance(y, expected), kTolerance);
    });
  }
}

TEST_P(CpuConvolution, BackwardData) {
  const Tensor dy = random(output_shape(), 1), w = random(GetParam().w, 2);
  Tensor expected = wide(GetParam().x);
  kernels::conv2d_backward_data.on(Target::reference)(wide(dy), wide(w), geometry(), expected);
  in_every_way([&](MemoryFormat format) {
    Tensor dx = Tensor::full(GetParam().x, 99, {.format = format});
    kernels::conv2d_backward_data.on(Target::cpu)(dy.to(format), w, geometry(), dx);
    EXPECT_LT(distance(dx, expected), kTolerance);
  });
}

TEST_P(CpuConvolution, BackwardWeights) {
  const Tensor dy = random(output_shape(), 1), x = random(GetParam().x, 2);
  Tensor expected = wide(GetParam().w), expected_db = wide(Shape{GetParam().w[0]});
  kernels::conv2d_backward_weights.on(Target::reference)(wide(dy), wide(x), geometry(), expected, expected_db);
  in_every_way([&](MemoryFormat format) {
    Tensor dw = Tensor::empty(GetParam().w), db = Tensor::empty({GetParam().w[0]});
    kernels::conv2d_backward_weights.on(Target::cpu)(dy.to(format), x.to(format), geometry(), dw, db);
    EXPECT_LT(distance(dw, expected), kTolerance);
    EXPECT_LT(distance(db, expected_db), kTolerance);
  });
}

// Tests the algorithms that the automatic choice does not take here. oneDNN's primitives are for bf16 on processors
// with such instructions, but the same calls run in f32 on every processor.
TEST_P(CpuConvolution, OtherAlgorithms) {
  const Tensor x = random(GetParam().x, 1), w = random(GetParam().w, 2), bias = random({GetParam().w[0]}, 3);
  const Tensor dy = random(output_shape(), 4);
  Tensor y = wide(output_shape()), dx = wide(GetParam().x), dw = wide(GetParam().w), db = wide(Shape{w.size(0)});
  kernels::conv2d.on(Target::reference)(wide(x), wide(w), wide(bias), geometry(), true, y);
  kernels::conv2d_backward_data.on(Target::reference)(wide(dy), wide(w), geometry(), dx);
  kernels::conv2d_backward_weights.on(Target::reference)(wide(dy), wide(x), geometry(), dw, db);
  in_every_way([&](MemoryFormat format) {
    const TensorOptions options{.format = format};
    Tensor found = Tensor::empty(y.shape(), options), found_dx = Tensor::empty(dx.shape(), options);
    Tensor found_dw = Tensor::empty(dw.shape()), found_db = Tensor::empty(db.shape());
    for (const auto algorithm : {cpu::ConvAlgorithm::direct, cpu::ConvAlgorithm::onednn}) {
      cpu::conv2d(x.to(format), w, bias, geometry(), true, found, algorithm);
      cpu::conv2d_backward_data(dy.to(format), w, geometry(), found_dx, algorithm);
      cpu::conv2d_backward_weights(dy.to(format), x.to(format), geometry(), found_dw, found_db, algorithm);
      EXPECT_LT(distance(found, y), kTolerance);
      EXPECT_LT(distance(found_dx, dx), kTolerance);
      EXPECT_LT(distance(found_dw, dw), kTolerance);
      EXPECT_LT(distance(found_db, db), kTolerance);
    }
  });
}

// The errors of docs/performance.md: the greatest, by the greatest value.
TEST(CpuConvolutionErrors, AreThoseOfTheDocsSlow) {
  const auto error = [](const Tensor& found, const Tensor& expected) {
    const auto a = found.to_vector<double>(), b = expected.to_vector<double>();
    double most = 0, greatest = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      most = std::max(most, std::abs(a[i] - b[i]));
      greatest = std::max(greatest, std::abs(b[i]));
    }
    return most / greatest;
  };
  const auto wide = [](const Tensor& tensor) { return tensor.to(DType::f64); };
  const auto errors = [&](const char* name, const Shape& x_shape, const Shape& w_shape, const ConvGeometry& geometry) {
    const Tensor x = random(x_shape, 1), w = random(w_shape, 2);
    const Tensor dy = random(kernels::conv2d_output_shape(x_shape, w_shape, geometry), 3);
    const TensorOptions f64{.dtype = DType::f64};
    Tensor y = Tensor::empty(dy.shape(), f64), dx = Tensor::empty(x_shape, f64), dw = Tensor::empty(w_shape, f64), none;
    kernels::conv2d.on(Target::reference)(wide(x), wide(w), none, geometry, false, y);
    kernels::conv2d_backward_data.on(Target::reference)(wide(dy), wide(w), geometry, dx);
    kernels::conv2d_backward_weights.on(Target::reference)(wide(dy), wide(x), geometry, dw, none);
    Tensor y32 = Tensor::empty(dy.shape()), dx32 = Tensor::empty(x_shape), dw32 = Tensor::empty(w_shape);
    kernels::conv2d.on(Target::cpu)(x, w, none, geometry, false, y32);
    kernels::conv2d_backward_data.on(Target::cpu)(dy, w, geometry, dx32);
    kernels::conv2d_backward_weights.on(Target::cpu)(dy, x, geometry, dw32, none);
    const std::vector<double> found = {error(y32, y), error(dx32, dx), error(dw32, dw)};
    for (size_t i = 0; i < found.size(); ++i)
      testing::Test::RecordProperty(name + std::to_string(i), fmt::format("{:.1e}", found[i]));
    return *std::ranges::max_element(found);
  };
  const Shape x{4, 64, 16, 16}, three{64, 64, 3, 3}, five{64, 64, 5, 5};
  EXPECT_LT(errors("winograd_3x3_", x, three, {.padding = 1}), 1e-5);
  EXPECT_LT(errors("winograd_5x5_", x, five, {.padding = 2}), 1e-5);
  EXPECT_LT(errors("depthwise_", x, {64, 1, 3, 3}, {.padding = 1, .groups = 64}), 1e-6);
  kernels::set_library_rules({}, {.direct_convolutions = true});
  EXPECT_LT(errors("direct_3x3_", x, three, {.padding = 1}), 2e-6);
  EXPECT_LT(errors("direct_5x5_", x, five, {.padding = 2}), 2e-6);
  kernels::set_library_rules({}, {});
}

TEST_P(CpuConvolution, GivesTheSameBitsTwice) {
  const Tensor x = random(GetParam().x, 1), w = random(GetParam().w, 2), dy = random(output_shape(), 3);
  in_every_way([&](MemoryFormat format) {
    const auto bits = [&] {
      Tensor dx = Tensor::empty(x.shape(), {.format = format}), dw = Tensor::empty(w.shape());
      Tensor db = Tensor::empty({w.size(0)});
      kernels::conv2d_backward_data.on(Target::cpu)(dy.to(format), w, geometry(), dx);
      kernels::conv2d_backward_weights.on(Target::cpu)(dy.to(format), x.to(format), geometry(), dw, db);
      return std::tuple(dx.to_vector<float>(), dw.to_vector<float>(), db.to_vector<float>());
    };
    EXPECT_EQ(bits(), bits());
  });
}

INSTANTIATE_TEST_SUITE_P(Geometries, CpuConvolution, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tern
