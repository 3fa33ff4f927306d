#include "tern/networks/lenet.h"

#include "tern/core/error.h"

namespace tern::networks {
namespace {

enum class LeNetVariant : uint8_t { terngrad, caffe };
constexpr Words<2> words_of(LeNetVariant) { return {"terngrad", "caffe"}; }

std::unique_ptr<Layer> make_lenet(const ModelSpec& spec) {
  const auto& [channels, height, width, classes] = spec.images;
  check_input(channels == 1 && height == 28 && width == 28, "LeNet: found images of ", channels, "x", height, "x",
              width, ", expected 1x28x28");
  if (spec.choice<LeNetVariant>("variant") == LeNetVariant::caffe) return std::make_unique<CaffeLeNet>();
  return std::make_unique<LeNet>();
}

}  // namespace

const Network& lenet() {
  static const Network network = {
      .name = "lenet",
      .model = make_lenet,
      .choices = {choice_of<LeNetVariant>("variant", "LeNet of the TernGrad paper, or of Caffe")},
      .presets = {{.name = "lenet"}}};
  return network;
}

}  // namespace tern::networks
