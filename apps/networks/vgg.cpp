#include "tern/networks/vgg.h"

#include <algorithm>
#include <array>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/data/transforms.h"

namespace tern::networks {
namespace {

constexpr int64_t kStages = 5, kReduction = 1 << kStages;  ///< of height and width, by the poolings

/// Convolutions in each stage.
std::array<int, kStages> stages_of(VggDepth depth) {
  switch (depth) {
    case VggDepth::a: return {1, 1, 2, 2, 2};
    case VggDepth::twelve: return {1, 2, 2, 2, 2};
    case VggDepth::sixteen: return {2, 2, 3, 3, 3};
    case VggDepth::nineteen: return {2, 2, 4, 4, 4};
  }
  fail({"vgg: unknown depth"});
}

/// Pixels per channel behind the last pooling.
int64_t last_pixels(const VggOptions& options) {
  check_input(options.height >= kReduction && options.width >= kReduction, "VGG: found images of ", options.height, "x",
              options.width, ", expected ", kReduction, "x", kReduction, " or larger");
  return (options.height / kReduction) * (options.width / kReduction);
}

/// The rows of a layer's tensors, and the columns of the next layer's weights: `block` of them for each neuron.
HiddenLayer neurons_of(const VggNames& layer, const VggNames& next, int64_t block = 1) {
  HiddenLayer neurons{layer.weights, {{layer.weights + ".weight", 0}, {next.weights + ".weight", 1, block}}};
  if (layer.norm.empty()) neurons.indices.push_back({layer.weights + ".bias", 0});
  for (const char* tensor : {".weight", ".bias", ".running_mean", ".running_var"})
    if (!layer.norm.empty()) neurons.indices.push_back({layer.norm + tensor, 0});
  return neurons;
}

/// --stem: the images, and with them the neurons of each hidden layer: 4096 as published, or 512 as in Zagoruyko's VGG
/// for CIFAR-10 (2015).
enum class VggStem : uint8_t { imagenet, cifar };
constexpr Words<2> words_of(VggStem) { return {"imagenet", "cifar"}; }

/// --norm: as the paper that uses this depth has it, or the same for all.
enum class NormChoice : uint8_t { paper, none, convolutions, all };
constexpr Words<4> words_of(NormChoice) { return {"paper", "none", "convolutions", "all"}; }

/// TernGrad trains A and 16, IST 12, and QSGD 19.
VggNorm paper_norm(VggDepth depth) {
  switch (depth) {
    case VggDepth::twelve: return VggNorm::all;
    case VggDepth::nineteen: return VggNorm::none;
    default: return VggNorm::convolutions;
  }
}

VggNorm norm_of(NormChoice choice, VggDepth depth) {
  switch (choice) {
    case NormChoice::none: return VggNorm::none;
    case NormChoice::convolutions: return VggNorm::convolutions;
    case NormChoice::all: return VggNorm::all;
    default: return paper_norm(depth);
  }
}

std::unique_ptr<Layer> make_vgg(const ModelSpec& spec) {
  const auto& [channels, height, width, classes] = spec.images;
  const auto depth = spec.choice<VggDepth>("depth");
  return std::make_unique<Vgg>(VggOptions{.depth = depth,
                                          .norm = norm_of(spec.choice<NormChoice>("norm"), depth),
                                          .channels = channels,
                                          .height = height,
                                          .width = width,
                                          .classes = classes,
                                          .hidden = spec.choice<VggStem>("stem") == VggStem::cifar ? 512 : 4096});
}

/// Images of 224×224 and more: crops of 224×224 (section 3.1). Smaller images: padded by 4 pixels, then cropped to
/// their size (He et al., 2016, section 4.2). All are mirrored.
void augment_vgg(Transform& transform, const ImageSpec& images) {
  constexpr int64_t kCrop = 224;
  transform.random_crop = transform.random_flip = true;
  if (images.height >= kCrop && images.width >= kCrop)
    transform.crop_height = transform.crop_width = kCrop;
  else
    transform.pad = 4;
}

}  // namespace

VggFeatures::VggFeatures(const VggOptions& options) {
  int64_t in = options.channels, out = options.filters;
  const bool norm = options.norm != VggNorm::none;
  for (const int count : stages_of(options.depth)) {
    for (int i = 0; i < count; ++i) {
      VggNames& names = convolutions_.emplace_back();
      names.weights = "features." + append<Conv2d>({.in = in,
                                                    .out = out,
                                                    .padding = 1,
                                                    .bias = !norm,
                                                    .relu = !norm,
                                                    .weight_initializer = kaiming_normal({.fan = Fan::out}),
                                                    .bias_initializer = constant(0)});
      if (norm) names.norm = "features." + append<BatchNorm2d>({.features = out, .relu = true});
      skip_relu();
      in = out;
    }
    append<MaxPool2d>({});
    out = std::min(2 * out, 8 * options.filters);
  }
  filters_ = in;
}

VggClassifier::VggClassifier(const Options& options) {
  append_hidden(options.in, options.network);
  append_hidden(options.network.hidden, options.network);
  append_output(options.network);
}

void VggClassifier::append_hidden(int64_t in, const VggOptions& options) {
  const bool norm = options.norm == VggNorm::all;
  VggNames& names = linears_.emplace_back();
  names.weights = "classifier." + append<Linear>({.in = in,
                                                  .out = options.hidden,
                                                  .bias = !norm,
                                                  .relu = !norm,
                                                  .weight_initializer = normal(0.01),
                                                  .bias_initializer = constant(0)});
  if (norm) names.norm = "classifier." + append<BatchNorm1d>({.features = options.hidden, .relu = true});
  skip_relu();
  append<Dropout>({.probability = options.dropout});
}

void VggClassifier::append_output(const VggOptions& options) {
  const bool norm = options.norm == VggNorm::all;
  VggNames& names = linears_.emplace_back();
  names.weights = "classifier." + append<Linear>({.in = options.hidden,
                                                  .out = options.classes,
                                                  .bias = !norm,
                                                  .weight_initializer = normal(0.01),
                                                  .bias_initializer = constant(0)});
  if (norm)
    names.norm = "classifier." + append<BatchNorm1d>({.features = options.classes, .weight = false, .bias = false});
}

Vgg::Vgg(const VggOptions& options)
    : pixels(last_pixels(options)),
      features(add<VggFeatures>("features", options)),
      classifier(add<VggClassifier>("classifier", {.in = features.filters() * pixels, .network = options})) {}

SubnetPlan Vgg::subnet_plan(SubnetScope scope) const {
  if (scope == SubnetScope::blocks) return {};
  const bool filters = scope == SubnetScope::filters;
  const std::vector<VggNames>& layers = filters ? features.convolutions() : classifier.linears();
  SubnetPlan plan = {.units = filters ? "filters" : "neurons"};
  for (size_t i = 0; i + 1 < layers.size(); ++i) plan.layers.push_back(neurons_of(layers[i], layers[i + 1]));
  if (filters) plan.layers.push_back(neurons_of(layers.back(), classifier.linears().front(), pixels));
  return plan;
}

const Network& vgg() {
  // The authors stop after 370,000 steps, and divide the rate by 10 whenever the validation accuracy stalls: three
  // times (section 3.1). Here it falls at even distances.
  static const Network network = {
      .name = "vgg",
      .model = make_vgg,
      .choices = {choice_of<VggDepth>("depth", "Layers with weights; A has 11"),
                  choice_of<VggStem>("stem", "Hidden layers: of 4096 neurons, or of 512 for small images"),
                  choice_of<NormChoice>("norm",
                                        "Batch norm; paper: convolutions for A and 16, all for 12, none for 19")},
      .recipe = {.defaults = {.data = "shapes224",
                              .iterations = 370'000,
                              .batch_size = 256,
                              .eval_batch_size = 50,
                              .lr_schedule = LrSchedule::step,
                              .lr_steps = {0.25, 0.5, 0.75},
                              .weight_decay = 5e-4},
                 .augment = augment_vgg},
      .presets = {{.name = "vgg-a", .choices = {{"depth", "A"}}},
                  {.name = "vgg12", .choices = {{"depth", "12"}}},
                  {.name = "vgg16", .choices = {{"depth", "16"}}},
                  {.name = "vgg19", .choices = {{"depth", "19"}}}}};
  return network;
}

}  // namespace tern::networks
