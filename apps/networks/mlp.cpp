#include "tern/networks/mlp.h"

namespace tern::networks {
namespace {

/// Normalisation before each ReLU.
enum class HiddenNorm : uint8_t { batch, none };
constexpr Words<2> words_of(HiddenNorm) { return {"batch", "none"}; }

std::unique_ptr<Layer> make_mlp(const ModelSpec& spec) {
  return std::make_unique<Mlp>(
      Mlp::Options{.widths = {spec.images.numel(), spec.counts.at("hidden"), spec.images.classes},
                   .norm = spec.choice<HiddenNorm>("norm") == HiddenNorm::batch});
}

}  // namespace

const Network& mlp() {
  static const Network network = {
      .name = "mlp",
      .model = make_mlp,
      .choices = {choice_of<HiddenNorm>("norm", "Normalisation before the ReLU")},
      .counts = {{.flag = "hidden", .value = 512, .help = "Neurons between input and output"}},
      .presets = {{.name = "mlp"}, {.name = "mlp4096", .data = "tones", .counts = {{"hidden", 4096}}}}};
  return network;
}

}  // namespace tern::networks
