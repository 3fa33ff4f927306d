#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/imagenet_table.h"
#include "tern/networks/googlenet.h"

namespace tern::reproduce {
namespace {

ImageNetRow googlenet_floats(double accuracy) { return {"float", "float", "none", "4e-05", "0.2", accuracy}; }
ImageNetRow googlenet_ternary(const char* weight_decay, double accuracy) {
  return {"ternary", "TernGrad", "ternary", weight_decay, "0.08", accuracy};
}

/// Top-5 accuracy of GoogLeNet with float and TernGrad.
std::unique_ptr<Experiment> make_terngrad_table3(const ExperimentOptions& options) {
  return make_imagenet_table(
      {.name = "terngrad-table3",
       .heading = "TernGrad, Table 3: GoogLeNet",
       .program = networks::googlenet().program(),
       .flags = {"--lr-schedule", "poly", "--top", "5"},
       .last_layer = "fc.*",
       .score = "top-5 accuracy",
       .data = {"images", "shapes224"},
       .quick_images = 8,
       .quick_steps = 40,
       .setting =
           "GoogLeNet with batch norm and without auxiliary classifiers, on {}. Inputs are 224×224: random areas of 8 "
           "to 100 % of the picture, mirrored, with random brightness, saturation and contrast; for the test, the "
           "middle of the picture. Momentum is 0.9; the learning rate falls along a polynomial of power 0.5 (section "
           "4.2). Each worker has its own batch statistics. TernGrad clips at 2.5 σ. It leaves the last layer, and "
           "tensors of fewer than 9,217 elements, in float, as the authors' code does.",
       .brief = " This is a short form. Its running statistics have a decay of 0.9, because the paper's 0.9997 needs "
                "thousands of steps. In too few steps, GoogLeNet does not learn. Then the table shows that all rows "
                "run, and what they send.",
       .groups = {{2, 128, 600'000, "0.04", {googlenet_floats(88.30), googlenet_ternary("1e-05", 86.77)}},
                  {4, 256, 300'000, "0.08", {googlenet_floats(87.82), googlenet_ternary("1e-05", 85.96)}},
                  {8, 512, 300'000, "0.1", {googlenet_floats(89.00), googlenet_ternary("2e-05", 86.47)}}}},
      options);
}

}  // namespace

ExperimentEntry terngrad_table3() {
  return {.name = "terngrad-table3",
          .title = "TernGrad, Table 3: GoogLeNet, float against TernGrad",
          .data =
              "ImageNet, or other pictures of more than 5 classes: --data images --data-dir DIR; or, to try it, "
              "shapes that are drawn: --data shapes224",
          .time = "months on 2 cores; with --quick 40 steps of 16 pictures, which are not enough to learn",
          .device = kLongOnGpu,
          .make = make_terngrad_table3};
}

}  // namespace tern::reproduce
