#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "tern/kernels/cuda/cudnn_plan.h"

// cuDNN can make plans for a device that is not here, from its properties. So machines without a GPU can also check
// that every convolution of the models has a plan, including fp32 without tensor cores.

namespace tern::cuda {
namespace {

/// The properties of an H200, in cuDNN's JSON format.
constexpr std::string_view kH200 = R"({
  "deviceName": "NVIDIA H200", "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "pciDeviceId": 0,
  "isTccDriver": 0, "supportCoopLaunch": 1, "totalGlobalMem": 150754820096, "multiProcessorCount": 132,
  "l2CacheSize": 62914560, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "warpSize": 32,
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "maxThreadsPerBlock": 1024,
  "maxThreadsPerSM": 2048, "maxCtasPerSM": 32, "regsPerBlock": 65536, "maxRegistersPerSM": 65536,
  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024})";

Descriptor h200() {
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "test");
  properties
      .set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
           std::span<const char>(kH200.data(), kH200.size()))
      .finish();
  return properties;
}

struct PlannedCase {
  const char* name;
  Shape x, w;
  kernels::ConvGeometry geometry = {};
};
const PlannedCase kPlannedCases[] = {
    {"LeNet conv1", {64, 1, 28, 28}, {20, 1, 5, 5}},
    {"LeNet conv2", {64, 20, 12, 12}, {50, 20, 5, 5}},
    {"CifarNet conv1", {128, 3, 24, 24}, {64, 3, 5, 5}, {.padding = 2}},
    {"ResNet stem", {128, 3, 32, 32}, {16, 3, 3, 3}, {.padding = 1}},
    {"ResNet strided", {128, 16, 32, 32}, {32, 16, 3, 3}, {.stride = 2, .padding = 1}},
    {"ResNet-18 block", {128, 64, 32, 32}, {64, 64, 3, 3}, {.padding = 1}},
    {"ResNet-18 shortcut", {128, 64, 32, 32}, {128, 64, 1, 1}, {.stride = 2}},
    {"AlexNet conv1", {256, 3, 224, 224}, {64, 3, 11, 11}, {.stride = 4, .padding = 2}},
    {"AlexNet conv2 in groups", {128, 96, 27, 27}, {256, 48, 5, 5}, {.padding = 2, .groups = 2}},
    {"odd channels", {1, 3, 11, 9}, {5, 3, 3, 3}, {.padding = 1}},
    {"groups", {2, 12, 7, 7}, {18, 4, 3, 3}, {.padding = 1, .groups = 3}},
    {"depthwise", {2, 9, 7, 7}, {9, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 9}},
    {"dilated unevenly", {1, 3, 10, 9}, {4, 3, 2, 3}, {.stride = 2, .dilation = {3, 2}}},
    {"rows that no window reaches", {1, 2, 8, 8}, {2, 2, 3, 3}, {.stride = 4}},
    {"one element", {1, 1, 1, 1}, {1, 1, 1, 1}},
};

TEST(CudnnPlan, EveryConvolutionHasOneForAnH200) {
  const Descriptor properties = h200();
  for (const auto& [name, x, w, geometry] : kPlannedCases)
    for (const auto pass :
         {ConvolutionPass::forward, ConvolutionPass::backward_data, ConvolutionPass::backward_weights})
      for (const DType dtype : {DType::f32, DType::bf16})
        for (const auto& [format, adds] : {std::pair(MemoryFormat::channels_last, false),
                                           {MemoryFormat::channels_last, true},
                                           {MemoryFormat::row_major, false},
                                           {MemoryFormat::row_major, true}}) {
          const ConvolutionProblem problem{.pass = pass,
                                           .x = x,
                                           .w = w,
                                           .y = kernels::conv2d_output_shape(x, w, geometry),
                                           .geometry = geometry,
                                           .format = format,
                                           .dtype = dtype,
                                           .adds = pass == ConvolutionPass::backward_data && adds};
          try {
            const bool tensor_cores = dtype == DType::bf16;
            const auto plans = convolution_graph(problem, {.properties = &properties})
                                   .plans({.tensor_cores = tensor_cores, .deterministic = true}, 1);
            ASSERT_EQ(plans.size(), 1);
            EXPECT_LT(plans[0].workspace_bytes(), int64_t{2} << 30) << name;
            EXPECT_FALSE(plans[0].has_note(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) << name;
            EXPECT_TRUE(tensor_cores || !plans[0].has_note(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) << name;
          } catch (const Error& error) {
            ADD_FAILURE() << name << ", pass " << static_cast<int>(pass) << ", " << to_string(dtype) << ", "
                          << to_string(format) << ": " << error.what();
          }
        }
}

// cuDNN 9.19 proposes a counterpart of each engine, with the same knobs and workspace.
TEST(CudnnPlan, StrictFp32HasACounterpartOfEachEngineWithAnEpilogue) {
  const Descriptor properties = h200();
  for (const auto& [name, x, w, geometry] : kPlannedCases)
    for (const MemoryFormat format : {MemoryFormat::channels_last, MemoryFormat::row_major}) {
      const auto proposals = [&](Epilogue epilogue) {
        const ConvolutionProblem problem{.pass = ConvolutionPass::forward,
                                         .x = x,
                                         .w = w,
                                         .y = kernels::conv2d_output_shape(x, w, geometry),
                                         .geometry = geometry,
                                         .format = format,
                                         .dtype = DType::f32,
                                         .epilogue = epilogue};
        std::vector<std::pair<decltype(Engine::knobs), int64_t>> found;
        for (const GraphPlan& plan :
             convolution_graph(problem, {.properties = &properties}).plans_if_any({.tensor_cores = false}, 8))
          found.emplace_back(plan.engine().knobs, plan.workspace_bytes());
        return found;
      };
      const auto plain = proposals(Epilogue::none);
      EXPECT_FALSE(plain.empty());
      EXPECT_EQ(proposals(Epilogue::bias), plain) << name << ", " << to_string(format);
      EXPECT_EQ(proposals(Epilogue::bias_relu), plain) << name << ", " << to_string(format);
    }
}

// cuDNN pads three channels to eight in its workspace, in each pass.
TEST(CudnnPlan, ImagesWithSpareChannelsAreNotPadded) {
  const Descriptor properties = h200();
  for (const auto pass : {ConvolutionPass::forward, ConvolutionPass::backward_weights}) {
    const auto workspace = [&](int64_t channels) {
      const kernels::ConvGeometry geometry{.stride = 4, .padding = 2};
      const Shape x{256, channels, 224, 224}, w{64, channels, 11, 11};
      const ConvolutionProblem problem{.pass = pass,
                                       .x = x,
                                       .w = w,
                                       .y = kernels::conv2d_output_shape(x, w, geometry),
                                       .geometry = geometry,
                                       .format = MemoryFormat::channels_last,
                                       .dtype = DType::bf16};
      return convolution_graph(problem, {.properties = &properties}).plans({}, 1).at(0).workspace_bytes();
    };
    constexpr int64_t kPadded = int64_t{256} * 224 * 224 * 8 * 2;  // bytes
    EXPECT_GE(workspace(3), kPadded);
    EXPECT_LT(workspace(8), kPadded / 8);
  }
}

// A plan that transposes has both arrays once more in its workspace.
TEST(CudnnPlan, StrictFp32TransposesImagesThatAreChannelsLast) {
  const Descriptor properties = h200();
  const std::pair<Shape, Shape> cases[] = {{{64, 20, 12, 12}, {50, 20, 5, 5}},
                                           {{128, 16, 32, 32}, {16, 16, 3, 3}},
                                           {{512, 64, 32, 32}, {64, 64, 3, 3}},
                                           {{512, 256, 8, 8}, {256, 256, 3, 3}}};
  for (const auto& [x, w] : cases)
    for (const auto pass :
         {ConvolutionPass::forward, ConvolutionPass::backward_data, ConvolutionPass::backward_weights}) {
      const kernels::ConvGeometry geometry{.padding = 1};
      const Shape y = kernels::conv2d_output_shape(x, w, geometry);
      const auto transposes = [&](MemoryFormat format) {
        const ConvolutionProblem problem{
            .pass = pass, .x = x, .w = w, .y = y, .geometry = geometry, .format = format, .dtype = DType::f32};
        const auto plans = convolution_graph(problem, {.properties = &properties}).plans({.tensor_cores = false}, 1);
        return plans.at(0).workspace_bytes() >= (x.numel() + y.numel()) * 4;
      };
      SCOPED_TRACE(testing::Message() << to_string(x) << ", pass " << static_cast<int>(pass));
      const bool of_weights = pass == ConvolutionPass::backward_weights;
      EXPECT_EQ(transposes(MemoryFormat::channels_last), !of_weights);
      EXPECT_EQ(transposes(MemoryFormat::row_major), of_weights && x[1] == 256);
    }
}

TEST(CudnnPlan, RefusesWhatCannotBe) {
  const Descriptor properties = h200();
  const ConvolutionProblem problem{.pass = ConvolutionPass::forward,
                                   .x = {1, 3, 8, 8},
                                   .w = {4, 2, 3, 3},
                                   .y = {1, 4, 6, 6},
                                   .geometry = {},
                                   .format = MemoryFormat::channels_last,
                                   .dtype = DType::f32};
  const auto plan = [&] { return convolution_graph(problem, {.properties = &properties}).plans({}, 1); };
  EXPECT_THROW(plan(), Error) << "3 channels meet 2";
}

class CudnnEngines : public testing::TestWithParam<ConvolutionPass> {
 protected:
  std::vector<GraphPlan> plans(const EngineRules& rules, size_t most = 8) const { return graph_.plans(rules, most); }
  ConvolutionProblem problem_{.pass = GetParam(),
                              .x = {128, 64, 32, 32},
                              .w = {64, 64, 3, 3},
                              .y = {128, 64, 32, 32},
                              .geometry = {.padding = 1},
                              .format = MemoryFormat::channels_last,
                              .dtype = DType::f32};
  const Descriptor properties_ = h200();
  const OperationGraph graph_ = convolution_graph(problem_, {.properties = &properties_});
};

TEST_P(CudnnEngines, AreMadeAnewFromWhatIsRememberedOfThem) {
  bool any_knobs = false;
  for (const bool tensor_cores : {false, true})
    for (const GraphPlan& plan : plans({.tensor_cores = tensor_cores})) {
      any_knobs |= !plan.engine().knobs.empty();
      const auto again = graph_.plan(parse_engine(to_string(plan.engine())).value());
      ASSERT_TRUE(again) << to_string(plan.engine());
      EXPECT_EQ(again->engine(), plan.engine());
      EXPECT_EQ(again->workspace_bytes(), plan.workspace_bytes()) << to_string(plan.engine());
    }
  EXPECT_TRUE(any_knobs);
  EXPECT_FALSE(graph_.plan({.index = 9999, .knobs = {}})) << "an engine that this cuDNN has not";
  Engine twice = plans({}).front().engine();
  ASSERT_FALSE(twice.knobs.empty());
  twice.knobs.push_back(twice.knobs.front());
  EXPECT_FALSE(graph_.plan(twice)) << "a knob that is set twice";
}

TEST_P(CudnnEngines, SeveralAreThereToBeTimed) {
  const auto strict = plans({.tensor_cores = false}), tf32 = plans({});
  EXPECT_GT(tf32.size(), 1);
  EXPECT_FALSE(strict.empty());
  for (const auto& plan : strict) EXPECT_FALSE(plan.has_note(CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
  EXPECT_TRUE(tf32.front().has_note(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) << "the best engine for tf32 is one of these";
  EXPECT_EQ(plans({}, 1).front().engine(), tf32.front().engine());
}

TEST_P(CudnnEngines, KeepToTheWorkspaceWhereTheyCan) {
  for (const auto& plan : plans({.workspace_bytes = 1 << 20})) EXPECT_LE(plan.workspace_bytes(), 1 << 20);
}

INSTANTIATE_TEST_SUITE_P(Passes, CudnnEngines,
                         testing::Values(ConvolutionPass::forward, ConvolutionPass::backward_data,
                                         ConvolutionPass::backward_weights));

}  // namespace
}  // namespace tern::cuda
