#include "tern/networks/googlenet.h"

#include "tern/core/error.h"
#include "tern/data/transforms.h"
#include "tern/layers/pooling.h"

namespace tern::networks {
namespace {

/// An inception module, and the window of the max pooling with stride 2 behind it; 0: none.
struct InceptionRow {
  const char* name;
  InceptionOptions options;
  int64_t pooling_behind = 0;
};

/// Szegedy et al., 2015, table 1. The window of the last pooling is that of TernGrad and torchvision.
const std::vector<InceptionRow>& googlenet_rows() {
  static const std::vector<InceptionRow> rows = {
      {"inception3a", {64, 96, 128, 16, 32, 32}},        {"inception3b", {128, 128, 192, 32, 96, 64}, 3},
      {"inception4a", {192, 96, 208, 16, 48, 64}},       {"inception4b", {160, 112, 224, 24, 64, 64}},
      {"inception4c", {128, 128, 256, 24, 64, 64}},      {"inception4d", {112, 144, 288, 32, 64, 64}},
      {"inception4e", {256, 160, 320, 32, 128, 128}, 2}, {"inception5a", {256, 160, 320, 32, 128, 128}},
      {"inception5b", {384, 192, 384, 48, 128, 128}}};
  return rows;
}

/// Ioffe and Szegedy, 2015, figure 5. Modules 3c and 4e have the stride.
const std::vector<InceptionRow>& bn_inception_rows() {
  constexpr auto kAverage = InceptionPool::average, kPass = InceptionPool::max_pass, kMax = InceptionPool::max;
  static const std::vector<InceptionRow> rows = {{"inception3a", {64, 64, 64, 64, 96, 32, kAverage, 2}},
                                                 {"inception3b", {64, 64, 96, 64, 96, 64, kAverage, 2}},
                                                 {"inception3c", {0, 128, 160, 64, 96, 0, kPass, 2, 2}},
                                                 {"inception4a", {224, 64, 96, 96, 128, 128, kAverage, 2}},
                                                 {"inception4b", {192, 96, 128, 96, 128, 128, kAverage, 2}},
                                                 {"inception4c", {160, 128, 160, 128, 160, 128, kAverage, 2}},
                                                 {"inception4d", {96, 128, 192, 160, 192, 128, kAverage, 2}},
                                                 {"inception4e", {0, 128, 192, 192, 256, 0, kPass, 2, 2}},
                                                 {"inception5a", {352, 192, 320, 160, 224, 128, kAverage, 2}},
                                                 {"inception5b", {352, 192, 320, 192, 224, 128, kMax, 2}}};
  return rows;
}

void append_pooling(Sequential& branch, const InceptionOptions& options) {
  if (options.pool == InceptionPool::average)
    branch.append<AvgPool2d>({.window = 3, .stride = options.stride, .padding = 1, .count_include_pad = false});
  else
    branch.append<MaxPool2d>({.window = 3, .stride = options.stride, .padding = 1});
}

std::unique_ptr<Layer> make_googlenet(const ModelSpec& spec) {
  constexpr int64_t kLeastSide = 32;
  const auto& [channels, height, width, classes] = spec.images;
  check_input(height >= kLeastSide && width >= kLeastSide, "GoogLeNet: found images of ", height, "x", width,
              ", expected ", kLeastSide, "x", kLeastSide, " or larger");
  auto model = std::make_unique<GoogLeNet>(GoogLeNet::Options{.variant = spec.choice<InceptionVariant>("variant"),
                                                              .channels = channels,
                                                              .classes = classes,
                                                              .dropout = std::stod(spec.choices.at("dropout"))});
  set_norm_momentum(*model, spec);
  return model;
}

/// BN-Inception has no dropout (Ioffe and Szegedy, 2015, section 4.2.1).
void drop_dropout(TrainSettings& settings, const IsGiven& is_given) {
  const bool bn_inception = settings.choices.at("variant") == to_string(InceptionVariant::bn_inception);
  if (bn_inception && !is_given("dropout")) settings.choices["dropout"] = "0";
}

/// Random areas of 8 to 100 % of the picture, resized to 224×224, or to the size of smaller pictures (Szegedy et al.,
/// 2015, section 6); mirrored; random brightness, saturation and contrast, as in the code of Inception's authors, but
/// without its change of hue.
void augment_googlenet(Transform& transform, const ImageSpec& images) {
  constexpr int64_t kCrop = 224;
  if (images.height >= kCrop && images.width >= kCrop) transform.crop_height = transform.crop_width = kCrop;
  transform.random_area = transform.random_flip = true;
  transform.brightness = 32.0f / 255;
  transform.contrast_low = 0.5f;
  transform.contrast_high = 1.5f;
  if (images.channels != 3) return;
  transform.saturation_low = 0.5f;
  transform.saturation_high = 1.5f;
}

}  // namespace

int64_t build_inception(Branches& module, int64_t in, const InceptionOptions& o) {
  if (o.ones > 0) module.append<BasicConv2d>({.in = in, .out = o.ones});
  module.append<Sequential>()
      .append<BasicConv2d>({.in = in, .out = o.threes_reduced})
      .append<BasicConv2d>({.in = o.threes_reduced, .out = o.threes, .kernel = 3, .stride = o.stride});
  auto& wide = module.append<Sequential>().append<BasicConv2d>({.in = in, .out = o.wide_reduced});
  for (int64_t i = 0; i < o.wide_convolutions; ++i)
    wide.append<BasicConv2d>({.in = i == 0 ? o.wide_reduced : o.wide,
                              .out = o.wide,
                              .kernel = 3,
                              .stride = i + 1 == o.wide_convolutions ? o.stride : 1});
  auto& pooling = module.append<Sequential>();
  append_pooling(pooling, o);
  const bool passes = o.pool == InceptionPool::max_pass;
  if (!passes) pooling.append<BasicConv2d>({.in = in, .out = o.pooled});
  return o.ones + o.threes + o.wide + (passes ? in : o.pooled);
}

int64_t GoogLeNet::add_layers(const Options& options) {
  const auto convolve = [&](const char* name, const BasicConv2d::Options& convolution) {
    layers.push_back(&add<BasicConv2d>(name, convolution));
  };
  int poolings = 0;
  const auto pool = [&](int64_t window) {
    layers.push_back(
        &add<MaxPool2d>(join({"maxpool", ++poolings}), {.window = window, .stride = 2, .ceil_mode = true}));
  };
  convolve("conv1", {.in = options.channels, .out = 64, .kernel = 7, .stride = 2});
  pool(3);
  convolve("conv2", {.in = 64, .out = 64});
  convolve("conv3", {.in = 64, .out = 192, .kernel = 3});
  pool(3);
  int64_t channels = 192;
  const bool bn_inception = options.variant == InceptionVariant::bn_inception;
  for (const InceptionRow& row : bn_inception ? bn_inception_rows() : googlenet_rows()) {
    auto& module = add<Branches>(row.name);
    channels = build_inception(module, channels, row.options);
    layers.push_back(&module);
    if (row.pooling_behind > 0) pool(row.pooling_behind);
  }
  return channels;
}

const Network& googlenet() {
  static const Network network = {
      .name = "googlenet",
      .model = make_googlenet,
      .choices = {choice_of<InceptionVariant>("variant", "GoogLeNet with batch norm, or BN-Inception"),
                  {.flag = "dropout",
                   .values = {"0.2", "0.08", "0"},
                   .help = "Ratio: TernGrad has 0.2 for float, 0.08 for ternary. The default of bn-inception is 0"},
                  norm_momentum_choice()},
      .recipe = {.defaults = {.data = "shapes224",
                              .iterations = 600'000,
                              .batch_size = 128,
                              .eval_batch_size = 50,
                              .lr = 0.04,
                              .lr_schedule = LrSchedule::poly,
                              .weight_decay = 4e-5},
                 .augment = augment_googlenet,
                 .settle = drop_dropout},
      .presets = {{.name = "googlenet"},
                  {.name = "bn-inception",
                   .choices = {{"variant", to_string(InceptionVariant::bn_inception)}, {"dropout", "0"}}}}};
  return network;
}

}  // namespace tern::networks
