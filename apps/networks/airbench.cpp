#include "tern/networks/airbench.h"

#include <algorithm>
#include <cmath>

#include "tern/core/error.h"
#include "tern/core/visit.h"
#include "tern/data/whitening.h"
#include "tern/layers/initialize.h"

namespace tern::networks {
namespace {

constexpr int64_t kPatch = 2, kPool = 2, kLastPool = 3;
constexpr int64_t kWidths[] = {64, 256, 256};

/// The extent of an image behind the three groups and the last pooling.
int64_t pooled(int64_t extent) { return (extent - kPatch + 1) / kPool / kPool / kPool / kLastPool; }

/// PyTorch's first values, but the first filters pass the input on.
Initializer partly_dirac() {
  return [](const TensorPart& filters, const RandomStream& random) {
    default_weight()(filters, random);
    const Tensor first = filters.values.slice(0, std::min(filters.values.size(0), filters.values.size(1)));
    dirac()(first, random);
  };
}

/// PyTorch's first values with a standard deviation of 1.
Initializer unit_deviation() {
  return [](const TensorPart& weight, const RandomStream& random) {
    default_weight()(weight, random);
    check(weight.values.shape() == weight.whole, "airbench: a part of a weight has no deviation of its own");
    visit_floating(weight.values.dtype(), "initialize", [&]<class T>(T) {
      const auto values = weight.values.span<T>();
      double sum = 0, squares = 0;
      for (const double value : values) {
        sum += value;
        squares += value * value;
      }
      const auto n = static_cast<double>(values.size());
      const double deviation = std::sqrt((squares - sum * sum / n) / (n - 1));
      for (T& value : values) value = static_cast<T>(value / deviation);
    });
  };
}

Conv2d::Options convolution(int64_t in, int64_t out) {
  return {.in = in, .out = out, .same = true, .bias = false, .weight_initializer = partly_dirac()};
}

BatchNorm::Options normalization(int64_t features) {
  return {.features = features, .epsilon = 1e-12, .momentum = 0.4, .weight = false};
}

std::unique_ptr<Layer> make_airbench(const ModelSpec& spec) {
  const auto& [channels, height, width, classes] = spec.images;
  check_input(pooled(height) >= 1 && pooled(width) >= 1, "airbench: images of ", height, "x", width,
              ", expected 25x25 or more");
  return std::make_unique<Airbench>(
      Airbench::Options{.channels = channels, .height = height, .width = width, .classes = classes});
}

/// Images padded by 2 pixels of their mirror image, then cropped; mirrored in every other epoch.
void augment_airbench(Transform& transform, const ImageSpec&) {
  transform.pad = 2;
  transform.reflect_pad = transform.random_crop = transform.alternating_flip = true;
}

/// The schedule of the whitening filters' bias ends early, if there is a schedule that ends.
void settle_airbench(TrainSettings& settings, const IsGiven& is_given) {
  const bool ends = settings.lr_schedule == LrSchedule::poly || settings.lr_schedule == LrSchedule::cosine;
  if (ends || is_given("group")) return;
  const std::string until = ",until=0.375";
  std::string& spec = settings.group.front();
  spec.erase(spec.find(until), until.size());
}

/// Sets the whitening filters from the training images.
void whiten_images(Module& model, const Dataset& training, const Transform& transform) {
  const auto* images = dynamic_cast<const ImageDataset*>(&training);
  check_input(images != nullptr, "airbench: data set '", training.name(), "' has no pictures");
  dynamic_cast<Airbench&>(model).whiten.weight.value().copy_from(whitening_filters(*images, transform));
}

}  // namespace

Airbench::Group::Group(const Options& options)
    : conv1(add<Conv2d>("conv1", convolution(options.in, options.out))),
      norm1(add<BatchNorm>("norm1", normalization(options.out))),
      conv2(add<Conv2d>("conv2", convolution(options.out, options.out))),
      norm2(add<BatchNorm>("norm2", normalization(options.out))) {}

Variable Airbench::Group::forward(const Variable& x) {
  const Variable y = gelu(norm1(max_pool2d(conv1(x), {.window = kPool, .stride = kPool})));
  return gelu(norm2(conv2(y)));
}

Airbench::Airbench(const Options& o)
    : whiten(add<Conv2d>("whiten", {.in = o.channels, .out = 2 * o.channels * kPatch * kPatch, .kernel = kPatch})),
      group1(add<Group>("group1", {.in = 2 * o.channels * kPatch * kPatch, .out = kWidths[0]})),
      group2(add<Group>("group2", {.in = kWidths[0], .out = kWidths[1]})),
      group3(add<Group>("group3", {.in = kWidths[1], .out = kWidths[2]})),
      head(add<Linear>("head", {.in = kWidths[2] * pooled(o.height) * pooled(o.width),
                                .out = o.classes,
                                .bias = false,
                                .weight_initializer = unit_deviation()})) {
  freeze("whiten.weight");
}

Variable Airbench::forward(const Variable& x) {
  const Variable y = group3(group2(group1(gelu(whiten(x)))));
  return head(flatten(max_pool2d(y, {.window = kLastPool, .stride = kLastPool}))) * (1.0 / kWidths[2]);
}

const Network& airbench() {
  // The authors add the losses of a batch of 2000 images, and tern takes their mean. So rates for gradients are 2000
  // times the authors' 0.053 and 0.67, and weight decays a 2000th of 0.004 ÷ the rate.
  static const Network network = {
      .name = "airbench",
      .model = make_airbench,
      .recipe = {.defaults = {.data = "shapes",
                              .epochs = 8,
                              .batch_size = 2000,
                              .eval_batch_size = 500,
                              .eval_every = 200,
                              .tta = TestViews::crops,
                              .optimizer = UpdateRule::muon,
                              .lr = 0.24,
                              .lr_schedule = LrSchedule::poly,
                              .lr_power = 1,
                              .group = {"whiten.bias:rule=nesterov,lr=106,momentum=0.85,weight-decay=3.7736e-5,"
                                        "until=0.375",
                                        "*.bias:rule=nesterov,lr=106,momentum=0.85,weight-decay=3.7736e-5",
                                        "head.weight:rule=nesterov,lr=1340,momentum=0.85,weight-decay=2.9851e-6"},
                              .momentum = 0.6,
                              .muon_iterations = 3,
                              .muon_normalize = true,
                              .label_smoothing = 0.2},
                 .augment = augment_airbench,
                 .prepare = whiten_images,
                 .settle = settle_airbench},
      .presets = {{.name = "airbench"}}};
  return network;
}

}  // namespace tern::networks
