#include <fmt/format.h>

#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/imagenet_table.h"
#include "tern/networks/alexnet.h"

namespace tern::reproduce {
namespace {

ImageNetRow alexnet_floats(double accuracy) { return {"float", "float", "none", "0.0005", "0.5", accuracy}; }
ImageNetRow alexnet_ternary(double accuracy) { return {"ternary", "TernGrad", "ternary", "0.0005", "0.2", accuracy}; }
ImageNetRow alexnet_unclipped(double accuracy) {
  return {"noclip", "TernGrad-noclip", "ternary:clip=0", "0.0005", "0.2", accuracy};
}

/// Top-1 accuracy of AlexNet with float, TernGrad, and TernGrad without clipping.
std::unique_ptr<Experiment> make_terngrad_table2(const ExperimentOptions& options) {
  const TrainSettings& recipe = networks::alexnet().recipe.defaults;
  return make_imagenet_table(
      {.name = "terngrad-table2",
       .heading = "TernGrad, Table 2: AlexNet",
       .program = networks::alexnet().program(),
       .flags = {"--lr-schedule", to_string(recipe.lr_schedule), "--lr-steps",
                 fmt::format("{}", fmt::join(recipe.lr_steps, ","))},
       .last_layer = "fc8.*",
       .score = "accuracy",
       .data = {"shapes224", "images"},
       .quick_images = 16,
       .quick_steps = 160,
       .setting =
           "AlexNet in two towers, with batch norm after its convolutions, on {}. Inputs are 224×224, mirrored at "
           "random. Shapes are drawn in this size. Images of a folder are resized to 256×256 and cropped at random. "
           "Momentum is 0.9 and weight decay 0.0005; the learning rate falls to a tenth after 27, 54 and 81 % of the "
           "steps (section 4.2). Each worker has its own batch statistics. TernGrad clips at 2.5 σ, TernGrad-noclip "
           "does not. Both leave the last layer, and tensors of fewer than 9,217 elements, in float, as the authors' "
           "code does.",
       .brief =
           " This is a short form. Its running statistics have a decay of 0.9, because the paper's 0.9997 needs "
           "thousands of steps. In too few steps, AlexNet does not learn. Then the table shows that all rows run, and "
           "what they send.",
       .groups = {{2, 256, 370'000, "0.01", {alexnet_floats(57.33), alexnet_ternary(57.61), alexnet_unclipped(54.63)}},
                  {4, 512, 185'000, "0.02", {alexnet_floats(57.32), alexnet_ternary(57.28)}},
                  {8, 1024, 92'500, "0.04", {alexnet_floats(56.62), alexnet_ternary(57.54)}}}},
      options);
}

}  // namespace

ExperimentEntry terngrad_table2() {
  return {.name = "terngrad-table2",
          .title = "TernGrad, Table 2: AlexNet, float against TernGrad with and without clipping",
          .data =
              "none: shapes of 224×224 are drawn; or --data images --data-dir DIR (CIFAR-10's 32×32 are too small). "
              "The paper's is ImageNet",
          .time = "weeks on 2 cores; with --quick 15 minutes, which is not long enough to learn",
          .device = kLongOnGpu,
          .make = make_terngrad_table2};
}

}  // namespace tern::reproduce
