#include "tern/apps/models/augmentation.h"
#include "tern/apps/models/one_tower_alexnet.h"
#include "tern/trainer/application.h"

// Trains AlexNet as TernGrad does (Wen et al., 2017, Table 2), here on drawn shapes of 224×224, or on pictures of your
// own: `train_alexnet --data images --data-dir DIR`.

namespace {

std::unique_ptr<tern::Module> make_alexnet(const tern::ModelSpec& spec) {
  const tern::models::AlexNetOptions options{.classes = spec.images.classes,
                                             .dropout = spec.choices.at("dropout") == "0.2" ? 0.2 : 0.5};
  if (spec.choices.at("towers") == "one") return std::make_unique<tern::models::OneTowerAlexNet>(options);
  auto model = std::make_unique<tern::models::AlexNet>(options);
  for (const tern::NamedModule& part : model->modules())
    if (auto* norm = dynamic_cast<tern::BatchNorm*>(part.module))
      norm->set_momentum(std::stod(spec.choices.at("norm-momentum")));
  return model;
}

}  // namespace

int main(int argc, char** argv) {
  return tern::train(
      argc, argv,
      {.name = "train_alexnet",
       .model = make_alexnet,
       .defaults = {.data = "shapes224",
                    .fit = tern::Fit::squash,
                    .iterations = 370'000,
                    .batch_size = 256,
                    .eval_batch_size = 50,
                    .lr_schedule = tern::LrSchedule::step,
                    .lr_steps = {0.27, 0.54, 0.81},
                    .weight_decay = 5e-4},
       .choices = {{.flag = "towers", .values = {"two", "one"}, .help = "Krizhevsky's of 2012, or of 2014"},
                   {.flag = "dropout", .values = {"0.5", "0.2"}, .help = "Ratio: the paper's for float, for ternary"},
                   {.flag = "norm-momentum",
                    .values = {"0.0003", "0.01", "0.1"},
                    .help = "A batch's share in the towers' running statistics: the authors', or for short runs"}},
       .augment = tern::models::augment_for_alexnet});
}
