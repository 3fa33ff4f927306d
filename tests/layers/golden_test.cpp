#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "tern/autograd/functional.h"
#include "tern/core/safetensors.h"
#include "tern/layers/activation.h"
#include "tern/layers/attention.h"
#include "tern/layers/containers.h"
#include "tern/layers/conv2d.h"
#include "tern/layers/dropout.h"
#include "tern/layers/linear.h"
#include "tern/layers/lstm.h"
#include "tern/layers/normalization.h"
#include "tern/layers/pooling.h"

// Compares every layer with PyTorch's values. tests/golden/make_golden.py writes them.

namespace tern {
namespace {

template <class L>
std::unique_ptr<Layer> make(const typename L::Options& options = {}) {
  return std::make_unique<L>(options);
}

template <class L>
std::unique_ptr<Layer> evaluated(const typename L::Options& options = {}) {
  auto layer = make<L>(options);
  layer->set_training(false);
  return layer;
}

std::unique_ptr<Layer> sequential() {
  auto layers = std::make_unique<Sequential>();
  layers->append<Linear>({.in = 5, .out = 6}).append<Tanh>().append<Linear>({.in = 6, .out = 2});
  return layers;
}

std::unique_ptr<Layer> residual() {
  auto block = std::make_unique<Residual>(Residual::Options{});
  block->body.append<Conv2d>({.in = 3, .out = 4, .kernel = 3, .stride = 2, .padding = 1, .bias = false})
      .append<BatchNorm2d>({.features = 4});
  block->shortcut.append<Conv2d>({.in = 3, .out = 4, .kernel = 1, .stride = 2, .bias = false});
  return block;
}

/// A layer that applies a function to its input.
class Lambda final : public Layer {
 public:
  explicit Lambda(Variable (*f)(const Variable&)) : f_(f) {}
  Variable forward(const Variable& x) override { return f_(x); }

 private:
  Variable (*f_)(const Variable&);
};
std::unique_ptr<Layer> lambda(Variable (*f)(const Variable&)) { return std::make_unique<Lambda>(f); }

Tensor labels() { return Tensor::from<int64_t>({3}, std::vector<int64_t>{2, 0, 4}); }

Tensor weights() { return Tensor::from<float>({5}, {0.5, 1, 2, 0.25, 3}); }
Tensor targets() {
  return Tensor::from<float>({3, 5}, {0.1f, 0.2f, 0.3f, 0.4f, 0, 1, 0, 0, 0, 0, 0, 0.25, 0.25, 0.25, 0.25});
}
/// Where targets() are above 0.
Tensor chosen() { return Tensor::from<uint8_t>({3, 5}, {1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1}); }

const std::map<std::string, std::function<std::unique_ptr<Layer>()>> kLayers{
    {"linear", [] { return make<Linear>({.in = 5, .out = 4}); }},
    {"linear_without_bias", [] { return make<Linear>({.in = 5, .out = 4, .bias = false}); }},
    {"linear_relu", [] { return make<Linear>({.in = 5, .out = 4, .relu = true}); }},
    {"conv2d", [] { return make<Conv2d>({.in = 3, .out = 4, .kernel = 3}); }},
    {"conv2d_relu", [] { return make<Conv2d>({.in = 3, .out = 4, .kernel = 5, .padding = 2, .relu = true}); }},
    {"conv2d_geometry",
     [] {
       return make<Conv2d>({.in = 4,
                            .out = 6,
                            .kernel = {3, 2},
                            .stride = {2, 1},
                            .padding = {2, 1},
                            .dilation = {1, 2},
                            .groups = 2,
                            .bias = false});
     }},
    {"conv2d_depthwise", [] { return make<Conv2d>({.in = 3, .out = 6, .kernel = 3, .padding = 1, .groups = 3}); }},
    {"conv2d_same",
     [] {
       return make<Conv2d>({.in = 3, .out = 4, .kernel = {2, 3}, .same = true, .dilation = {1, 2}});
     }},
    {"conv2d_one_image", [] { return make<Conv2d>({.in = 3, .out = 4, .kernel = 3}); }},
    {"conv_transpose2d",
     [] {
       return make<ConvTranspose2d>(
           {.in = 4, .out = 6, .kernel = {3, 2}, .stride = {2, 3}, .padding = 1, .added = {1, 2}, .groups = 2});
     }},
    {"batch_norm_1d", [] { return make<BatchNorm1d>({.features = 3, .momentum = 0.3}); }},
    {"batch_norm_2d", [] { return make<BatchNorm2d>({.features = 3, .epsilon = 1e-3}); }},
    {"batch_norm_relu", [] { return make<BatchNorm2d>({.features = 3, .relu = true}); }},
    {"batch_norm_evaluated", [] { return evaluated<BatchNorm2d>({.features = 3}); }},
    {"batch_norm_bare", [] { return make<BatchNorm2d>({.features = 3, .weight = false, .bias = false}); }},
    {"batch_norm_untracked", [] { return make<BatchNorm1d>({.features = 3, .running = false}); }},
    {"layer_norm",
     [] {
       return make<LayerNorm>({.shape = {6, 7}});
     }},
    {"layer_norm_bare",
     [] { return make<LayerNorm>({.shape = {5}, .epsilon = 1e-3, .weight = false, .bias = false}); }},
    {"local_response_norm", [] { return make<LocalResponseNorm>({.size = 5, .alpha = 0.5, .beta = 0.75, .k = 2}); }},
    {"max_pool2d", [] { return make<MaxPool2d>(); }},
    {"max_pool2d_ceil", [] { return make<MaxPool2d>({.window = 3, .stride = 2, .padding = 1, .ceil_mode = true}); }},
    {"avg_pool2d",
     [] {
       return make<AvgPool2d>({.window = {2, 3}});
     }},
    {"avg_pool2d_ceil", [] { return make<AvgPool2d>({.window = 3, .stride = 2, .padding = 1, .ceil_mode = true}); }},
    {"avg_pool2d_inside",
     [] { return make<AvgPool2d>({.window = 3, .stride = 2, .padding = 1, .count_include_pad = false}); }},
    {"global_avg_pool2d", [] { return make<GlobalAvgPool2d>(); }},
    {"adaptive_avg_pool2d",
     [] {
       return make<AdaptiveAvgPool2d>({.size = {4, 3}});
     }},
    {"max_pool2d_large",
     [] {
       return make<MaxPool2d>({.window = {16, 17}, .stride = Extent2(4, 3), .padding = {8, 0}});
     }},
    {"upsample_nearest2d",
     [] {
       return make<UpsampleNearest2d>({.factor = {2, 3}});
     }},
    {"reflection_pad2d", [] { return make<ReflectionPad2d>({.top = 3, .bottom = 0, .left = 1, .right = 4}); }},
    {"silu", [] { return make<Silu>(); }},
    {"relu", [] { return make<Relu>(); }},
    {"leaky_relu", [] { return make<LeakyRelu>({.slope = 0.1}); }},
    {"sigmoid", [] { return make<Sigmoid>(); }},
    {"tanh", [] { return make<Tanh>(); }},
    {"flatten", [] { return make<Flatten>(); }},
    {"dropout_evaluated", [] { return evaluated<Dropout>(); }},
    {"sequential", sequential},
    {"residual", residual},
    {"lstm", [] { return make<Lstm>({.in = 5, .hidden = 4}); }},
    {"lstm_projection", [] { return make<Lstm>({.in = 5, .hidden = 4, .projection = 3, .layers = 2}); }},
    {"lstm_without_bias", [] { return make<Lstm>({.in = 5, .hidden = 4, .bias = false}); }},
    {"attention", [] { return make<MultiHeadAttention>({.features = 6, .heads = 2}); }},
    {"attention_causal", [] { return make<MultiHeadAttention>({.features = 6, .heads = 2, .causal = true}); }},
    {"cross_entropy", [] { return lambda([](const Variable& x) { return cross_entropy(x, labels()); }); }},
    {"cross_entropy_smoothing",
     [] { return lambda([](const Variable& x) { return cross_entropy(x, labels(), {.smoothing = 0.1}); }); }},
    {"cross_entropy_weights",
     [] {
       return lambda([](const Variable& x) {
         return cross_entropy(x, labels(), {.smoothing = 0.2, .weights = weights(), .ignored_label = 0});
       });
     }},
    {"cross_entropy_each",
     [] {
       return lambda([](const Variable& x) {
         return cross_entropy(x, labels(),
                              {.weights = weights(), .ignored_label = 0, .reduction = LossReduction::none});
       });
     }},
    {"cross_entropy_probabilities",
     [] {
       return lambda(
           [](const Variable& x) { return cross_entropy(x, targets(), {.smoothing = 0.1, .weights = weights()}); });
     }},
    {"l1", [] { return lambda([](const Variable& x) { return l1(x, Tensor::full(x.shape(), 1)); }); }},
    {"mse_sum",
     [] { return lambda([](const Variable& x) { return mse(x, Tensor::full(x.shape(), 1), LossReduction::sum); }); }},
    {"binary_cross_entropy_each",
     [] {
       return lambda(
           [](const Variable& x) { return binary_cross_entropy_with_logits(x, targets(), LossReduction::none); });
     }},
    {"exp", [] { return lambda(exp); }},
    {"log", [] { return lambda([](const Variable& x) { return log(abs(x)); }); }},
    {"sqrt", [] { return lambda([](const Variable& x) { return sqrt(abs(x)); }); }},
    {"pow", [] { return lambda([](const Variable& x) { return pow(x, 3); }); }},
    {"clamp", [] { return lambda([](const Variable& x) { return clamp(x, -0.5, 0.75); }); }},
    {"numbers", [] { return lambda([](const Variable& x) { return (2 - (x + 1.5) * 3) / 4 - 1 / x; }); }},
    {"maximum", [] { return lambda([](const Variable& x) { return maximum(x, targets()); }); }},
    {"select", [] { return lambda([](const Variable& x) { return select(chosen(), x, -x); }); }},
    {"max", [] { return lambda([](const Variable& x) { return max(x, {1}); }); }},
    {"min", [] { return lambda([](const Variable& x) {
                   return min(x, {0, 1});
                 }); }},
    {"variance", [] { return lambda([](const Variable& x) { return variance(x, {0}, true); }); }},
    {"logsumexp", [] { return lambda([](const Variable& x) { return logsumexp(x, {0}); }); }},
    {"expand", [] { return lambda([](const Variable& x) {
                      return expand(unsqueeze(x, 1), {3, 2, 5});
                    }); }},
    {"stack", [] { return lambda([](const Variable& x) {
                     return stack({x, exp(x)}, 1);
                   }); }},
    {"split", [] { return lambda([](const Variable& x) {
                     return split(x, {1, 3, 1}, 1)[1];
                   }); }},
    {"embedding",
     [] {
       return lambda([](const Variable& x) { return embedding(Tensor::from<int64_t>({2, 2}, {2, 0, 2, 2}), x); });
     }},
    {"matmul_vectors",
     [] {
       return lambda([](const Variable& x) { return matmul(reshape(slice(x, 0, 0, 1), {5}), transpose(x, 0, 1)); });
     }},
    {"matmul_repeated",
     [] { return lambda([](const Variable& x) {
            return matmul(reshape(x, {3, 1, 1, 5}), reshape(x, {3, 5, 1}));
          }); }},
    {"mse", [] { return lambda([](const Variable& x) { return mse(x, Tensor::full(x.shape(), 1)); }); }},
    {"softmax", [] { return lambda(softmax); }},
    {"log_softmax", [] { return lambda(log_softmax); }},
};

const StateDict& golden() {
  static const StateDict values = read_safetensors(TERN_GOLDEN_DIR "/layers.safetensors").tensors;
  return values;
}

/// The entries whose names start with `prefix`. The prefix is removed.
StateDict under(const std::string& prefix) {
  StateDict found;
  for (const auto& [name, tensor] : golden())
    if (name.starts_with(prefix)) found.add(name.substr(prefix.size()), tensor);
  return found;
}

/// Expects equality within 1e-5 of the largest element.
void expect_close(const Tensor& found, const Tensor& expected, const std::string& what) {
  ASSERT_TRUE(found.defined()) << what;
  ASSERT_EQ(found.shape(), expected.shape()) << what;
  const auto f = found.to_vector<double>(), e = expected.to_vector<double>();
  double largest = 0;
  for (double value : e) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < e.size(); ++i) EXPECT_NEAR(f[i], e[i], 1e-5 * largest) << what << ", element " << i;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, MatchesPyTorchForwardAndBackward) {
  const std::string& name = GetParam();
  for (const auto format : {MemoryFormat::row_major, MemoryFormat::channels_last}) {
    const Tensor x = golden().at(name + "/x");
    if (x.rank() != 4 && format == MemoryFormat::channels_last) continue;
    SCOPED_TRACE(to_string(format));
    const auto layer = kLayers.at(name)();
    layer->initialize(1);
    layer->load_state(under(name + "/state/"));
    const auto leaf = Variable::leaf(x.to(format));
    const Variable y = (*layer)(leaf);
    expect_close(y.value(), golden().at(name + "/y"), "output");
    y.backward(golden().at(name + "/dy"));
    expect_close(leaf.gradient(), golden().at(name + "/dx"), "gradient of the input");

    const auto gradients = under(name + "/gradient/"), after = under(name + "/after/");
    ASSERT_EQ(gradients.size(), layer->parameters().size());
    for (const auto& [path, parameter] : layer->parameters())
      expect_close(parameter->gradient(), gradients.at(path), "gradient of " + path);
    ASSERT_EQ(after.size(), layer->buffers().size());
    for (const auto& [path, buffer] : layer->buffers()) expect_close(*buffer, after.at(path), path + " afterwards");
  }
}

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& [name, layer] : kLayers) found.push_back(name);
  return found;
}
INSTANTIATE_TEST_SUITE_P(Layers, Golden, testing::ValuesIn(names()), [](const auto& row) { return row.param; });

TEST(GoldenFile, HoldsTheTablesLayersOnly) {
  for (const auto& [name, tensor] : golden())
    EXPECT_TRUE(kLayers.contains(name.substr(0, name.find('/')))) << name << " is tested by no row";
}

}  // namespace
}  // namespace tern
