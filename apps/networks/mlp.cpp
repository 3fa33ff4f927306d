#include "tern/networks/mlp.h"

namespace tern::networks {
namespace {

std::unique_ptr<Layer> make_mlp(const ModelSpec& spec) {
  return std::make_unique<Mlp>(
      Mlp::Options{.widths = {spec.images.numel(), spec.counts.at("hidden"), spec.images.classes},
                   .norm = spec.choices.at("norm") == "batch"});
}

}  // namespace

const Network& mlp() {
  static const Network network = {
      .name = "mlp",
      .model = make_mlp,
      .choices = {{.flag = "norm", .values = {"batch", "none"}, .help = "Normalisation before the ReLU"}},
      .counts = {{.flag = "hidden", .value = 512, .help = "Neurons between input and output"}},
      .presets = {{.name = "mlp"}, {.name = "mlp4096", .data = "tones", .counts = {{"hidden", 4096}}}}};
  return network;
}

}  // namespace tern::networks
