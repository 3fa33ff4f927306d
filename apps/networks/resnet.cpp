#include "tern/networks/resnet.h"

#include "tern/data/transforms.h"

namespace tern::networks {
namespace {

/// --shortcut: as the paper has it for this depth, or option A or B for all.
enum class ShortcutChoice : uint8_t { paper, a, b };
constexpr Words<3> words_of(ShortcutChoice) { return {"paper", "A", "B"}; }

/// --width: channels of all layers; --inner-width: channels within blocks. Both are parts of the paper's.
enum class WidthChoice : uint8_t { whole, half, quarter };
constexpr Words<3> words_of(WidthChoice) { return {"1", "0.5", "0.25"}; }

std::unique_ptr<Layer> make_resnet(const ModelSpec& spec) {
  const int64_t depth = spec.counts.at("depth");
  ResNet::Options options{
      .depth = depth,
      .width = ResNetStages::of_depth(depth).width >> static_cast<int>(spec.choice<WidthChoice>("width")),
      .channels = spec.images.channels,
      .classes = spec.images.classes,
      .inner_divisor = int64_t{1} << static_cast<int>(spec.choice<WidthChoice>("inner-width")),
      .branch_divisor = spec.counts.at("branch-divisor")};
  options.stem = spec.choice<Stem>("stem");
  const auto shortcut = spec.choice<ShortcutChoice>("shortcut");
  if (shortcut == ShortcutChoice::a) options.shortcut = Shortcut::identity;
  if (shortcut == ShortcutChoice::b) options.shortcut = Shortcut::projection;
  return std::make_unique<ResNet>(options);
}

/// 110 layers start with a smaller rate, "until the training error is below 80 % (about 400 iterations)" (He et al.,
/// 2016).
void warm_up_110_layers(TrainSettings& settings, const IsGiven& is_given) {
  if (settings.counts.at("depth") != 110 || is_given("warmup")) return;
  settings.warmup = 400;
  if (!is_given("warmup-lr")) settings.warmup_lr = 0.01;
}

/// He et al., 2016; images are mirrored too. Images above 224×224: crops of 224×224 (section 3.4). Other images: padded
/// by 4 pixels, then cropped to their size (section 4.2).
void augment_resnet(Transform& transform, const ImageSpec& images) {
  constexpr int64_t kCrop = 224;
  transform.random_crop = transform.random_flip = true;
  if (images.height > kCrop && images.width > kCrop)
    transform.crop_height = transform.crop_width = kCrop;
  else
    transform.pad = 4;
}

/// Half of He et al.'s steps, with a rate that falls to 0.
void swift_resnet(TrainSettings& settings) {
  settings.iterations.reset();
  settings.epochs = 80;
  settings.lr_schedule = LrSchedule::cosine;
  settings.weight_decay = 5e-4;
}

}  // namespace

const Network& resnet() {
  static const Network network = {
      .name = "resnet",
      .model = make_resnet,
      .choices = {choice_of<Stem>("stem", "First layers: 3x3, or 7x7 and pooling"),
                  choice_of<ShortcutChoice>(
                      "shortcut", "Between stages: A pads with zeros, B projects; paper: A for 20 to 56 and 110"),
                  choice_of<WidthChoice>("width", "Channels of all layers, as a part of the paper's"),
                  choice_of<WidthChoice>(
                      "inner-width",
                      "Channels within blocks, as a part of the block's usual ones; 0.5: as a subnet of two workers")},
      .counts = {{.flag = "depth",
                  .value = 20,
                  .help = "Layers: 18, 20, 32, 44, 50, 56, 110 (--warmup 400 --warmup-lr 0.01) or 152"},
                 {.flag = "branch-divisor",
                  .value = 1,
                  .help = "Evaluations divide the branches of blocks by N; ResIST takes the number of workers",
                  .changes_training = false}},
      .recipe = {.defaults = {.data = "shapes",
                              .iterations = 64'000,
                              .batch_size = 128,
                              .lr = 0.1,
                              .lr_schedule = LrSchedule::step,
                              .lr_steps = {0.5, 0.75},
                              .weight_decay = 1e-4},
                 .augment = augment_resnet,
                 .settle = warm_up_110_layers},
      .recipes = {{.name = "swift", .help = "80 epochs, a rate that falls to 0", .change = swift_resnet}},
      .presets = {{.name = "resnet20", .counts = {{"depth", 20}}},
                  {.name = "resnet56", .counts = {{"depth", 56}}},
                  {.name = "resnet110", .counts = {{"depth", 110}}},
                  {.name = "resnet18", .counts = {{"depth", 18}}}}};
  return network;
}

}  // namespace tern::networks
