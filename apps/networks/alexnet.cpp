#include "tern/networks/alexnet.h"

#include "tern/core/error.h"
#include "tern/data/transforms.h"

namespace tern::networks {
namespace {

/// Krizhevsky's AlexNet of 2012 in two towers, or his of 2014 in one.
enum class Towers : uint8_t { two, one };
constexpr Words<2> words_of(Towers) { return {"two", "one"}; }

std::unique_ptr<Layer> make_alexnet(const ModelSpec& spec) {
  const AlexNetOptions options{.classes = spec.images.classes, .dropout = std::stod(spec.choices.at("dropout"))};
  if (spec.choice<Towers>("towers") == Towers::one) return std::make_unique<OneTowerAlexNet>(options);
  auto model = std::make_unique<AlexNet>(options);
  set_norm_momentum(*model, spec);
  return model;
}

/// Wen et al., 2017, after Caffe: random crops of 224×224, mirrored, minus ImageNet's mean colour; values stay in 0 to
/// 255.
void augment_alexnet(Transform& transform, const ImageSpec&) {
  transform.crop_height = transform.crop_width = 224;
  transform.random_crop = transform.random_flip = true;
  transform.mean = {123.68f / 255, 116.78f / 255, 103.94f / 255};
  transform.deviation = {1.0f / 255};
}

/// A configuration file with all flags has --norm-momentum, too, with its default.
void settle_alexnet(TrainSettings& settings, const IsGiven& given) {
  const bool one = settings.choices.at("towers") == to_string(Towers::one);
  const bool usual = settings.choices.at("norm-momentum") == norm_momentum_choice().values.front();
  check_input(!one || usual || !given("norm-momentum"),
              "--norm-momentum would change nothing: --towers one has no batch norm");
}

}  // namespace

const Network& alexnet() {
  static const Network network = {
      .name = "alexnet",
      .model = make_alexnet,
      .choices = {choice_of<Towers>("towers", "Krizhevsky's AlexNet of 2012, or of 2014"),
                  {.flag = "dropout", .values = {"0.5", "0.2"}, .help = "Ratio: the paper's for float, or for ternary"},
                  norm_momentum_choice()},
      .recipe = {.defaults = {.data = "shapes224",
                              .fit = Fit::squash,
                              .iterations = 370'000,
                              .batch_size = 256,
                              .eval_batch_size = 50,
                              .lr_schedule = LrSchedule::step,
                              .lr_steps = {0.27, 0.54, 0.81},
                              .weight_decay = 5e-4},
                 .augment = augment_alexnet,
                 .settle = settle_alexnet},
      .presets = {{.name = "alexnet", .choices = {{"towers", to_string(Towers::one)}}}}};
  return network;
}

}  // namespace tern::networks
