#include <gtest/gtest.h>

#include <ostream>

#include "tern/autograd/functional.h"
#include "tests/support/gradcheck.h"

namespace tern {
namespace {

using Inputs = std::vector<Variable>;

/// One row of the table: a function and the shapes of its inputs.
struct Case {
  const char* name;
  std::vector<Shape> shapes;
  Variable (*f)(const Inputs&);
};

void PrintTo(const Case& row, std::ostream* out) { *out << row.name; }

class Gradcheck : public testing::TestWithParam<Case> {};

TEST_P(Gradcheck, MatchesCentralDifferencesInEveryFormat) {
  const Case& row = GetParam();
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < row.shapes.size(); ++i)
    inputs.push_back(test::random_tensor(row.shapes[i], static_cast<uint32_t>(i)));
  test::expect_gradients_in_every_format(row.f, inputs);
}

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

const Shape kImages{2, 3, 4, 5};
const Tensor kMask = Tensor::from<uint8_t>({4, 5}, {1, 0, 0, 2, 0, 1, 1, 0, 1, 0, 0, 0, 1, 255, 1, 0, 1, 1, 0, 0});

INSTANTIATE_TEST_SUITE_P(Activation, Gradcheck,
                         testing::ValuesIn(std::vector<Case>{
                             {"relu", {kImages}, [](const Inputs& in) { return relu(in[0]); }},
                             {"leaky_relu", {kImages}, [](const Inputs& in) { return leaky_relu(in[0], 0.2); }},
                             {"sigmoid", {kImages}, [](const Inputs& in) { return sigmoid(in[0]); }},
                             {"tanh", {kImages}, [](const Inputs& in) { return tanh(in[0]); }},
                             {"gelu", {kImages}, [](const Inputs& in) { return gelu(in[0]); }},
                             {"gelu_tanh", {kImages}, [](const Inputs& in) { return gelu(in[0], GeluForm::by_tanh); }},
                             {"silu", {kImages}, [](const Inputs& in) { return silu(in[0]); }},
                             {"exp", {kImages}, [](const Inputs& in) { return exp(in[0]); }},
                             {"log", {kImages}, [](const Inputs& in) { return log(abs(in[0])); }},
                             {"sqrt", {kImages}, [](const Inputs& in) { return sqrt(abs(in[0])); }},
                             {"abs", {kImages}, [](const Inputs& in) { return abs(in[0]); }},
                             {"pow_square", {kImages}, [](const Inputs& in) { return pow(in[0], 2); }},
                             {"pow_cube", {kImages}, [](const Inputs& in) { return pow(in[0], 3); }},
                             {"pow_zero", {kImages}, [](const Inputs& in) { return pow(in[0], 0); }},
                             {"pow_root", {kImages}, [](const Inputs& in) { return pow(abs(in[0]), -0.5); }},
                             {"clamp", {kImages}, [](const Inputs& in) { return clamp(in[0], -0.7, 0.45); }},
                             {"clamp_below", {kImages}, [](const Inputs& in) { return clamp(in[0], -0.7); }}}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(
    Arithmetic, Gradcheck,
    testing::ValuesIn(std::vector<Case>{
        {"add", {kImages, kImages}, [](const Inputs& in) { return in[0] + in[1]; }},
        {"add_channels", {kImages, {3, 1, 1}}, [](const Inputs& in) { return in[0] + in[1]; }},
        {"add_both_repeat", {{2, 1, 4, 1}, {3, 1, 5}}, [](const Inputs& in) { return in[0] + in[1]; }},
        {"numbers", {kImages}, [](const Inputs& in) { return (2 - (in[0] + 1.5) * 3) / 4 - -in[0]; }},
        {"number_over", {kImages}, [](const Inputs& in) { return 2 / in[0]; }},
        {"maximum", {kImages, kImages}, [](const Inputs& in) { return maximum(in[0], in[1]); }},
        {"maximum_repeats", {{2, 1, 4, 1}, {3, 1, 5}}, [](const Inputs& in) { return maximum(in[0], in[1]); }},
        {"minimum", {kImages, {3, 1, 1}}, [](const Inputs& in) { return minimum(in[0], in[1]); }},
        {"select", {kImages, {4, 1}}, [](const Inputs& in) { return select(kMask, in[0], in[1]); }},
        {"subtract", {kImages, kImages}, [](const Inputs& in) { return in[0] - in[1]; }},
        {"subtract_scalar", {{}, kImages}, [](const Inputs& in) { return in[0] - in[1]; }},
        {"multiply", {kImages, kImages}, [](const Inputs& in) { return in[0] * in[1]; }},
        {"multiply_row", {{4, 3}, {1, 3}}, [](const Inputs& in) { return in[0] * in[1]; }},
        {"multiply_images", {{2, 1, 1, 5}, kImages}, [](const Inputs& in) { return in[0] * in[1]; }},
        {"square", {kImages}, [](const Inputs& in) { return in[0] * in[0]; }},
        {"divide", {{3, 4}, {3, 4}}, [](const Inputs& in) { return in[0] / in[1]; }},
        {"divide_column", {{3, 4}, {3, 1}}, [](const Inputs& in) { return in[0] / in[1]; }},
        {"divide_repeated", {{4}, {3, 4}}, [](const Inputs& in) { return in[0] / in[1]; }},
        {"add_relu", {kImages, kImages}, [](const Inputs& in) { return add_relu(in[0], in[1]); }},
        {"scale", {kImages}, [](const Inputs& in) { return scale(in[0], -2.5); }}}),
    name_of);

const Tensor kRows = Tensor::from<int64_t>({2, 3}, {3, 0, 3, 1, 1, 3});

INSTANTIATE_TEST_SUITE_P(
    Reduction, Gradcheck,
    testing::ValuesIn(std::vector<Case>{
        {"sum", {kImages}, [](const Inputs& in) { return sum(in[0]); }},
        {"sum_dimensions",
         {kImages},
         [](const Inputs& in) {
           return sum(in[0], {0, -1});
         }},
        {"sum_keep", {kImages}, [](const Inputs& in) { return sum(in[0], {1}, true); }},
        {"mean", {kImages}, [](const Inputs& in) { return mean(in[0]); }},
        {"mean_pixels",
         {kImages},
         [](const Inputs& in) {
           return mean(in[0], {2, 3});
         }},
        {"max", {kImages}, [](const Inputs& in) { return max(in[0]); }},
        {"max_channels", {kImages}, [](const Inputs& in) { return max(in[0], {1}, true); }},
        {"max_inner",
         {kImages},
         [](const Inputs& in) {
           return max(in[0], {-1, 0});
         }},
        {"min_rows", {{3, 4}}, [](const Inputs& in) { return min(in[0], {1}); }},
        {"variance", {kImages}, [](const Inputs& in) { return variance(in[0]); }},
        {"variance_images",
         {kImages},
         [](const Inputs& in) {
           return variance(in[0], {0, 2, 3}, true, 0);
         }},
        {"logsumexp",
         {kImages},
         [](const Inputs& in) {
           return logsumexp(in[0], {1, 3});
         }},
        {"logsumexp_rows", {{3, 4}}, [](const Inputs& in) { return logsumexp(in[0], {-1}, true); }}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(Layout, Gradcheck,
                         testing::ValuesIn(std::vector<Case>{
                             {"reshape",
                              {kImages},
                              [](const Inputs& in) {
                                return reshape(in[0], {6, -1});
                              }},
                             {"flatten", {kImages}, [](const Inputs& in) { return flatten(in[0]); }},
                             {"transpose", {{2, 3, 4}}, [](const Inputs& in) { return transpose(in[0], 0, -1); }},
                             {"transpose_images", {kImages}, [](const Inputs& in) { return transpose(in[0], 1, 2); }},
                             {"concat",
                              {{2, 3, 2, 2}, {2, 1, 2, 2}, {2, 2, 2, 2}},
                              [](const Inputs& in) {
                                return concat({in[0], in[1], in[2]}, 1);
                              }},
                             {"concat_twice",
                              {{2, 3}},
                              [](const Inputs& in) {
                                return concat({in[0], in[0]}, -1);
                              }},
                             {"slice", {kImages}, [](const Inputs& in) { return slice(in[0], 2, 1, 3); }},
                             {"pad",
                              {{2, 3, 2, 2}},
                              [](const Inputs& in) {
                                return pad(in[0], {{0, 0}, {1, 0}, {2, 1}, {0, 3}}, 0.5);
                              }},
                             {"permute_of_eight_dimensions",
                              {{2, 1, 2, 3, 1, 2, 1, 2}},
                              [](const Inputs& in) {
                                return permute(in[0], {7, 3, 1, 2, 0, 4, 6, 5});
                              }},
                             {"sum_of_eight_dimensions",
                              {{2, 1, 2, 3, 1, 2, 1, 2}},
                              [](const Inputs& in) {
                                return sum(in[0], {0, 3, 7});
                              }},
                             {"permute",
                              {kImages},
                              [](const Inputs& in) {
                                return permute(in[0], {2, 0, -1, 1});
                              }},
                             {"squeeze", {{2, 1, 4, 5}}, [](const Inputs& in) { return squeeze(in[0], 1); }},
                             {"unsqueeze", {{2, 4, 5}}, [](const Inputs& in) { return unsqueeze(in[0], -3); }},
                             {"expand",
                              {{3, 1, 5}},
                              [](const Inputs& in) {
                                return expand(in[0], {2, -1, 4, 5});
                              }},
                             {"expand_scalar",
                              {{}},
                              [](const Inputs& in) {
                                return expand(in[0], {2, 3});
                              }},
                             {"stack",
                              {{2, 3}, {2, 3}},
                              [](const Inputs& in) {
                                return stack({in[0], in[1]}, -1);
                              }},
                             {"split",
                              {kImages},
                              [](const Inputs& in) {
                                const auto parts = split(in[0], {1, 0, 3}, 2);
                                return parts[0] + parts[2] * parts[2];
                              }},
                             {"split_unused",
                              {kImages},
                              [](const Inputs& in) {
                                return split(in[0], {2, 1}, 1)[1];
                              }},
                             {"reflection_pad2d",
                              {kImages},
                              [](const Inputs& in) {
                                return reflection_pad2d(in[0], {.top = 3, .bottom = 1, .left = 2, .right = 4});
                              }},
                             {"embedding", {{4, 3}}, [](const Inputs& in) { return embedding(kRows, in[0]); }}}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(Matmul, Gradcheck,
                         testing::ValuesIn(std::vector<Case>{{"matmul",
                                                              {{2, 3}, {3, 4}},
                                                              [](const Inputs& in) { return matmul(in[0], in[1]); }},
                                                             {"matmul_ta",
                                                              {{3, 2}, {3, 4}},
                                                              [](const Inputs& in) {
                                                                return matmul(in[0], in[1], {true, false});
                                                              }},
                                                             {"matmul_tb",
                                                              {{2, 3}, {4, 3}},
                                                              [](const Inputs& in) {
                                                                return matmul(in[0], in[1], {false, true});
                                                              }},
                                                             {"matmul_both",
                                                              {{3, 2}, {4, 3}},
                                                              [](const Inputs& in) {
                                                                return matmul(in[0], in[1], {true, true});
                                                              }},
                                                             {"matmul_batched",
                                                              {{2, 2, 3}, {2, 3, 4}},
                                                              [](const Inputs& in) { return matmul(in[0], in[1]); }},
                                                             {"matmul_batched_both",
                                                              {{2, 2, 3, 2}, {2, 2, 4, 3}},
                                                              [](const Inputs& in) {
                                                                return matmul(in[0], in[1], {true, true});
                                                              }},
                                                             {"matmul_shared",
                                                              {{2, 2, 3}, {3, 4}},
                                                              [](const Inputs& in) { return matmul(in[0], in[1]); }},
                                                             {"matmul_shared_tb",
                                                              {{2, 2, 3}, {4, 3}},
                                                              [](const Inputs& in) {
                                                                return matmul(in[0], in[1], {false, true});
                                                              }},
                                                             {"matmul_shared_ta",
                                                              {{2, 3, 2}, {3, 4}},
                                                              [](const Inputs& in) {
                                                                return matmul(in[0], in[1], {true, false});
                                                              }},
                                                             {"matmul_shared_both",
                                                              {{2, 3, 2}, {4, 3}},
                                                              [](const Inputs& in) {
                                                                return matmul(in[0], in[1], {true, true});
                                                              }},
                                                             {"linear",
                                                              {{4, 3}, {5, 3}, {5}},
                                                              [](const Inputs&
                                                                     in) { return linear(in[0], in[1], in[2]); }},
                                                             {"linear_without_bias",
                                                              {{4, 3}, {5, 3}},
                                                              [](const Inputs& in) {
                                                                return linear(in[0], in[1], {});
                                                              }},
                                                             {"linear_relu",
                                                              {{4, 3}, {5, 3}, {5}},
                                                              [](const Inputs& in) {
                                                                return linear(in[0], in[1], in[2], {.relu = true});
                                                              }}}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(
    Convolution, Gradcheck,
    testing::ValuesIn(std::vector<Case>{{"conv2d",
                                         {{2, 3, 5, 6}, {4, 3, 3, 3}, {4}},
                                         [](const Inputs& in) { return conv2d(in[0], in[1], in[2]); }},
                                        {"conv2d_without_bias",
                                         {{2, 3, 4, 4}, {2, 3, 1, 1}},
                                         [](const Inputs& in) { return conv2d(in[0], in[1], {}); }},
                                        {"conv2d_stride_padding",
                                         {{1, 2, 6, 7}, {3, 2, 3, 2}, {3}},
                                         [](const Inputs& in) {
                                           return conv2d(in[0], in[1], in[2], {.stride = {2, 3}, .padding = {1, 2}});
                                         }},
                                        {"conv2d_dilation",
                                         {{1, 2, 7, 6}, {2, 2, 3, 2}, {2}},
                                         [](const Inputs& in) {
                                           return conv2d(in[0], in[1], in[2], {.padding = 1, .dilation = {2, 3}});
                                         }},
                                        {"conv2d_groups",
                                         {{2, 4, 4, 4}, {6, 2, 3, 3}, {6}},
                                         [](const Inputs& in) {
                                           return conv2d(in[0], in[1], in[2], {.padding = 1, .groups = 2});
                                         }},
                                        {"conv2d_depthwise",
                                         {{1, 3, 4, 4}, {3, 1, 3, 3}, {3}},
                                         [](const Inputs& in) {
                                           return conv2d(in[0], in[1], in[2], {.stride = 2, .padding = 1, .groups = 3});
                                         }},
                                        {"conv2d_relu",
                                         {{1, 2, 4, 4}, {3, 2, 3, 3}, {3}},
                                         [](const Inputs& in) {
                                           return conv2d(in[0], in[1], in[2], {.padding = 1}, {.relu = true});
                                         }},
                                        {"conv2d_same",
                                         {{2, 3, 5, 6}, {4, 3, 2, 3}, {4}},
                                         [](const Inputs& in) { return conv2d_same(in[0], in[1], in[2]); }},
                                        {"conv2d_same_dilated",
                                         {{3, 7, 6}, {2, 3, 3, 3}},
                                         [](const Inputs& in) { return conv2d_same(in[0], in[1], {}, 2); }},
                                        {"conv_transpose2d",
                                         {{2, 3, 4, 3}, {3, 2, 3, 2}, {2}},
                                         [](const Inputs& in) { return conv_transpose2d(in[0], in[1], in[2]); }},
                                        {"conv_transpose2d_geometry",
                                         {{2, 4, 3, 4}, {4, 3, 3, 3}, {6}},
                                         [](const Inputs& in) {
                                           return conv_transpose2d(
                                               in[0], in[1], in[2],
                                               {.stride = {2, 3}, .padding = 1, .dilation = {1, 2}, .groups = 2},
                                               {1, 2});
                                         }},
                                        {"conv_transpose2d_added_beyond_the_stride",
                                         {{1, 2, 3, 4}, {2, 2, 2, 3}, {2}},
                                         [](const Inputs& in) {
                                           return conv_transpose2d(in[0], in[1], in[2],
                                                                   {.stride = {1, 2}, .padding = 1, .dilation = {3, 3}},
                                                                   {2, 2});
                                         }}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Pooling, Gradcheck,
    testing::ValuesIn(std::vector<Case>{
        {"max_pool2d", {{2, 3, 4, 6}}, [](const Inputs& in) { return max_pool2d(in[0]); }},
        {"max_pool2d_overlapping",
         {{2, 2, 5, 7}},
         [](const Inputs& in) { return max_pool2d(in[0], {.window = 3, .stride = 2, .padding = 1}); }},
        {"max_pool2d_ceil",
         {{1, 2, 6, 5}},
         [](const Inputs& in) { return max_pool2d(in[0], {.window = 3, .stride = 2, .ceil_mode = true}); }},
        {"average_pool2d", {{2, 3, 4, 6}}, [](const Inputs& in) { return average_pool2d(in[0]); }},
        {"average_pool2d_padding",
         {{1, 2, 5, 7}},
         [](const Inputs& in) { return average_pool2d(in[0], {.window = 3, .stride = 2, .padding = 1}); }},
        {"average_pool2d_ceil_include_pad",
         {{1, 2, 6, 5}},
         [](const Inputs& in) {
           return average_pool2d(
               in[0], {.window = 3, .stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = true});
         }},
        {"global_average_pool2d", {kImages}, [](const Inputs& in) { return global_average_pool2d(in[0]); }},
        {"adaptive_average_pool2d",
         {{2, 3, 5, 7}},
         [](const Inputs& in) {
           return adaptive_average_pool2d(in[0], {3, 2});
         }},
        {"adaptive_average_pool2d_even",
         {kImages},
         [](const Inputs& in) {
           return adaptive_average_pool2d(in[0], {2, 5});
         }},
        {"adaptive_average_pool2d_more",
         {{2, 3, 4}},
         [](const Inputs& in) {
           return adaptive_average_pool2d(in[0], {5, 6});
         }},
        {"upsample_nearest2d",
         {kImages},
         [](const Inputs& in) {
           return upsample_nearest2d(in[0], {2, 3});
         }}}),
    name_of);

/// Batch normalisation. Every call starts from the same running statistics.
Variable normalized(const Inputs& in, bool training, bool relu, const Variable& residual = {}) {
  const int64_t channels = in[0].shape()[1];
  const std::vector<double> means(static_cast<size_t>(channels), 0.25), variances(means.size(), 1.5);
  const BatchNormState state{in[1], in[2], Tensor::from({channels}, means), Tensor::from({channels}, variances)};
  return batch_norm(in[0], state, {.relu = relu}, training, residual);
}

INSTANTIATE_TEST_SUITE_P(
    Normalization, Gradcheck,
    testing::ValuesIn(std::vector<Case>{
        {"batch_norm_1d", {{5, 3}, {3}, {3}}, [](const Inputs& in) { return normalized(in, true, false); }},
        {"batch_norm_2d", {kImages, {3}, {3}}, [](const Inputs& in) { return normalized(in, true, false); }},
        {"batch_norm_relu", {kImages, {3}, {3}}, [](const Inputs& in) { return normalized(in, true, true); }},
        {"batch_norm_residual",
         {kImages, {3}, {3}, kImages},
         [](const Inputs& in) { return normalized(in, true, true, in[3]); }},
        {"batch_norm_inference_1d", {{5, 3}, {3}, {3}}, [](const Inputs& in) { return normalized(in, false, false); }},
        {"batch_norm_inference_relu",
         {kImages, {3}, {3}},
         [](const Inputs& in) { return normalized(in, false, true); }},
        {"batch_norm_inference_residual",
         {kImages, {3}, {3}, kImages},
         [](const Inputs& in) { return normalized(in, false, true, in[3]); }},
        {"local_response_norm",
         {{2, 7, 2, 3}},
         [](const Inputs& in) { return local_response_norm(in[0], {.size = 5, .alpha = 0.5, .beta = 0.75, .k = 2}); }},
        {"local_response_norm_even",
         {{1, 4, 2, 2}},
         [](const Inputs& in) { return local_response_norm(in[0], {.size = 4, .alpha = 0.5, .beta = 0.5, .k = 1}); }},
        {"batch_norm_no_affine", {kImages}, [](const Inputs& in) { return batch_norm(in[0], {}, {}, true); }},
        {"batch_norm_bias_alone",
         {kImages, {3}},
         [](const Inputs& in) {
           return batch_norm(in[0], {.gamma = {}, .beta = in[1], .running_mean = {}, .running_variance = {}}, {},
                             false);
         }},
        {"layer_norm",
         {kImages, {4, 5}, {4, 5}},
         [](const Inputs& in) {
           return layer_norm(in[0], {4, 5}, in[1], in[2]);
         }},
        {"layer_norm_no_affine", {{3, 7}}, [](const Inputs& in) { return layer_norm(in[0], {7}, {}, {}, 1e-3); }}}),
    name_of);

const Tensor kSamples = Tensor::from<int64_t>({4}, std::vector<int64_t>{7, 3, 900, 12});
const Tensor kWeights = Tensor::from<double>({5}, {0.5, 1, 2, 0.25, 3});
const Tensor kLabels = Tensor::from<int64_t>({4}, std::vector<int64_t>{2, 0, 4, 2});

const Tensor kCtcLabels = Tensor::from<int64_t>({3, 2}, std::vector<int64_t>{1, 2, 1, 1, 2, 1});
const Tensor kInputLengths = Tensor::from<int64_t>({3}, std::vector<int64_t>{6, 3, 5});
const Tensor kLabelLengths = Tensor::from<int64_t>({3}, std::vector<int64_t>{2, 2, 0});

INSTANTIATE_TEST_SUITE_P(Dropout, Gradcheck,
                         testing::ValuesIn(std::vector<Case>{
                             {"dropout",
                              {{4, 3, 2, 5}},
                              [](const Inputs& in) {
                                return dropout(in[0], kSamples, {.seed = 5, .step = 2, .layer = 1, .probability = 0.3});
                              }}}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(
    Loss, Gradcheck,
    testing::ValuesIn(std::vector<Case>{
        {"softmax", {{3, 4}}, [](const Inputs& in) { return softmax(in[0]); }},
        {"softmax_images", {{2, 2, 2, 3}}, [](const Inputs& in) { return softmax(in[0]); }},
        {"log_softmax", {{3, 4}}, [](const Inputs& in) { return log_softmax(in[0]); }},
        {"cross_entropy", {{4, 5}}, [](const Inputs& in) { return cross_entropy(in[0], kLabels); }},
        {"cross_entropy_smoothing",
         {{4, 5}},
         [](const Inputs& in) { return cross_entropy(in[0], kLabels, {.smoothing = 0.1}); }},
        {"mse", {kImages}, [](const Inputs& in) { return mse(in[0], test::random_tensor(kImages, 50)); }},
        {"binary_cross_entropy_with_logits",
         {kImages},
         [](const Inputs& in) {
           return binary_cross_entropy_with_logits(in[0], sigmoid(test::random_tensor(kImages, 50)).value());
         }},
        {"mse_none",
         {kImages},
         [](const Inputs& in) { return mse(in[0], test::random_tensor(kImages, 50), LossReduction::none); }},
        {"l1", {kImages}, [](const Inputs& in) { return l1(in[0], test::random_tensor(kImages, 50)); }},
        {"l1_sum",
         {kImages},
         [](const Inputs& in) { return l1(in[0], test::random_tensor(kImages, 50), LossReduction::sum); }},
        {"binary_cross_entropy_none",
         {kImages},
         [](const Inputs& in) {
           return binary_cross_entropy_with_logits(in[0], sigmoid(test::random_tensor(kImages, 50)).value(),
                                                   LossReduction::none);
         }},
        {"cross_entropy_weights",
         {{4, 5}},
         [](const Inputs& in) {
           return cross_entropy(in[0], kLabels, {.smoothing = 0.2, .weights = kWeights, .ignored_label = 4});
         }},
        {"cross_entropy_none",
         {{4, 5}},
         [](const Inputs& in) { return cross_entropy(in[0], kLabels, {.reduction = LossReduction::none}); }},
        {"cross_entropy_sum",
         {{4, 5}},
         [](const Inputs& in) {
           return cross_entropy(in[0], kLabels,
                                {.weights = kWeights, .ignored_label = 0, .reduction = LossReduction::sum});
         }},
        {"cross_entropy_probabilities",
         {{4, 5}},
         [](const Inputs& in) {
           const Tensor targets = softmax(test::random_tensor({4, 5}, 50)).value();
           return cross_entropy(in[0], targets,
                                {.smoothing = 0.1, .weights = kWeights, .reduction = LossReduction::sum});
         }},
        {"ctc_loss",
         {{6, 3, 4}},
         [](const Inputs& in) {
           return ctc_loss(in[0], kCtcLabels, {.input_lengths = kInputLengths, .label_lengths = kLabelLengths});
         }},
        {"ctc_loss_none",
         {{6, 3, 4}},
         [](const Inputs& in) {
           const Variable log_shares = log_softmax(in[0]);
           return ctc_loss(log_shares, kCtcLabels, {.blank = 3, .reduction = LossReduction::none});
         }}}),
    name_of);

// Four rows over seven columns. The second row is empty, column 2 is there three times, columns 1, 3 and 6 never.
const Tensor kBagIndices = Tensor::from<int64_t>({6}, std::vector<int64_t>{2, 0, 2, 5, 4, 2});
const Tensor kBagOffsets = Tensor::from<int64_t>({5}, std::vector<int64_t>{0, 3, 3, 4, 6});

INSTANTIATE_TEST_SUITE_P(Embedding, Gradcheck,
                         testing::ValuesIn(std::vector<Case>{
                             {"embedding_bag",
                              {{7, 3}},
                              [](const Inputs& in) { return embedding_bag(kBagIndices, kBagOffsets, {}, in[0]); }},
                             {"embedding_bag_values",
                              {{7, 3}},
                              [](const Inputs& in) {
                                return embedding_bag(kBagIndices, kBagOffsets,
                                                     test::random_tensor({6}, 50).to(DType::f32), in[0]);
                              }}}),
                         name_of);

// Four rows with 2, 0, 1 and 3 labels among seven classes, in chunks of three.
INSTANTIATE_TEST_SUITE_P(Labels, Gradcheck,
                         testing::ValuesIn(std::vector<Case>{
                             {"linear_cross_entropy",
                              {{4, 5}, {7, 5}},
                              [](const Inputs& in) {
                                const Tensor labels =
                                                 Tensor::from<int64_t>({6}, std::vector<int64_t>{1, 6, 0, 3, 3, 5}),
                                             offsets = Tensor::from<int64_t>({5}, std::vector<int64_t>{0, 2, 2, 3, 6});
                                return linear_cross_entropy(in[0], in[1], labels, offsets, {.chunk = 3}).loss;
                              }}}),
                         name_of);

}  // namespace
}  // namespace tern
