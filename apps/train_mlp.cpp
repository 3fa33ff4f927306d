#include "tern/apps/models/mlp.h"
#include "tern/trainer/application.h"

// Trains a perceptron with one hidden layer: 784-h-10 on handwritten or drawn digits, 4096-h-35 on generated melodies,
// `train_mlp --data tones --hidden 4096`.

int main(int argc, char** argv) {
  return tern::train(
      argc, argv,
      {.name = "train_mlp",
       .model = [](const tern::ModelSpec& spec) -> std::unique_ptr<tern::Module> {
         return std::make_unique<tern::models::Mlp>(
             tern::models::Mlp::Options{.widths = {spec.images.numel(), spec.counts.at("hidden"), spec.images.classes},
                                        .norm = spec.choices.at("norm") == "batch"});
       },
       .choices = {{.flag = "norm", .values = {"batch", "none"}, .help = "Normalisation before the ReLU"}},
       .counts = {{.flag = "hidden", .value = 512, .help = "Neurons between input and output"}}});
}
