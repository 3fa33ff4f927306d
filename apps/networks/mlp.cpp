#include "tern/networks/mlp.h"

namespace tern::networks {
namespace {

/// Number of linear layers, which IST's tables count.
enum class MlpDepth : uint8_t { two, three };
constexpr Words<2> words_of(MlpDepth) { return {"2", "3"}; }

std::unique_ptr<Layer> make_mlp(const ModelSpec& spec) {
  std::vector<int64_t> widths = {spec.images.numel()};
  widths.insert(widths.end(), spec.choice<MlpDepth>("layers") == MlpDepth::two ? 1 : 2, spec.counts.at("hidden"));
  widths.push_back(spec.images.classes);
  return std::make_unique<Mlp>(Mlp::Options{.widths = std::move(widths), .norm = spec.choice<MlpNorm>("norm")});
}

}  // namespace

const Network& mlp() {
  static const Network network = {
      .name = "mlp",
      .model = make_mlp,
      .choices = {choice_of<MlpDepth>("layers", "Linear layers"),
                  choice_of<MlpNorm>("norm", "Layers with batch normalisation; all: the output, too")},
      .counts = {{.flag = "hidden", .value = 512, .help = "Neurons of each hidden layer"}},
      .presets = {{.name = "mlp"},
                  {.name = "mlp4096", .data = "tones", .counts = {{"hidden", 4096}}},
                  {.name = "mlp3x8192", .data = "tones", .choices = {{"layers", "3"}}, .counts = {{"hidden", 8192}}}}};
  return network;
}

}  // namespace tern::networks
