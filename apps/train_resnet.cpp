#include "tern/apps/models/augmentation.h"
#include "tern/apps/models/resnet.h"
#include "tern/trainer/application.h"

// Trains a residual network as He et al. (2016, section 4.2) do: `train_resnet --data cifar10 --data-dir DIR`, or on
// drawn shapes with no file, where the loss of 20 layers stays at chance for some 500 steps of 64 before it falls.
// Section 3.4's networks for ImageNet take `--data images --data-dir DIR --stem imagenet --depth 18`.

namespace {

using tern::models::ResNet;

std::unique_ptr<tern::Module> make_resnet(const tern::ModelSpec& spec) {
  ResNet::Options options{
      .depth = spec.counts.at("depth"), .channels = spec.images.channels, .classes = spec.images.classes};
  if (spec.choices.at("stem") == "imagenet") options.stem = tern::models::Stem::imagenet;
  const std::string& shortcut = spec.choices.at("shortcut");
  if (shortcut == "A") options.shortcut = tern::models::Shortcut::identity;
  if (shortcut == "B") options.shortcut = tern::models::Shortcut::projection;
  return std::make_unique<ResNet>(options);
}

/// 110 layers begin with a smaller rate, "until the training error is below 80 % (about 400 iterations)".
void warm_up_110_layers(tern::TrainSettings& settings, const tern::IsGiven& is_given) {
  if (settings.counts.at("depth") != 110 || is_given("warmup")) return;
  settings.warmup = 400;
  if (!is_given("warmup-lr")) settings.warmup_lr = 0.01;
}

}  // namespace

int main(int argc, char** argv) {
  return tern::train(
      argc, argv,
      {.name = "train_resnet",
       .model = make_resnet,
       .defaults = {.data = "shapes",
                    .iterations = 64'000,
                    .batch_size = 128,
                    .lr = 0.1,
                    .lr_schedule = tern::LrSchedule::step,
                    .lr_steps = {0.5, 0.75},
                    .weight_decay = 1e-4},
       .choices = {{.flag = "stem", .values = {"cifar", "imagenet"}, .help = "First layers: 3x3, or 7x7 and pooling"},
                   {.flag = "shortcut",
                    .values = {"paper", "A", "B"},
                    .help = "Between stages: A pads with zeros, B projects; paper: A for 20 to 56 and 110"}},
       .counts = {{.flag = "depth",
                   .value = 20,
                   .help = "Layers: 18, 20, 32, 44, 50, 56, 110 (--warmup 400 --warmup-lr 0.01) or 152"}},
       .augment = tern::models::augment_for_resnet,
       .settle = warm_up_110_layers});
}
