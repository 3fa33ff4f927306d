#include "tern/apps/reproduce/papers.h"

namespace tern {

// Wen et al., "TernGrad: Ternary Gradients to Reduce Communication in Distributed Deep Learning", NIPS 2017.
std::span<const ExperimentEntry> terngrad_experiments() {
  static const ExperimentEntry entries[] = {
      {.name = "terngrad-fig1",
       .title = "TernGrad, Figure 1: distributed SGD with data parallelism",
       .data = "none",
       .lacks = "it is a diagram, with nothing to measure"},
      {.name = "terngrad-fig2",
       .title = "TernGrad, Figure 2: histograms of original, clipped, ternary and averaged gradients",
       .data = "CIFAR-10: ./dev data cifar10",
       .time = "about 12 minutes on 2 cores; with --quick 90 seconds",
       .make = make_terngrad_fig2},
      {.name = "terngrad-fig3",
       .title = "TernGrad, Figure 3: LeNet on MNIST, accuracy over the number of workers",
       .data = "MNIST: ./dev data mnist",
       .time = "about 2.5 hours on 2 cores; with --quick 3 minutes",
       .device = kAnyDevice,
       .make = make_terngrad_fig3},
      {.name = "terngrad-fig4",
       .title = "TernGrad, Figure 4: accuracy, training loss and sparsity of gradients over iterations",
       .data = "CIFAR-10: ./dev data cifar10",
       .time = "about 25 minutes on 2 cores; with --quick 6 minutes",
       .make = make_terngrad_fig4},
      {.name = "terngrad-fig5",
       .title = "TernGrad, Figure 5: training throughput on two clusters, up to 512 GPUs",
       .data = "none",
       .time = "a moment",
       .make = make_terngrad_fig5},
      {.name = "terngrad-table1",
       .title = "TernGrad, Table 1: CifarNet on CIFAR-10, 2 workers and 16",
       .data = "CIFAR-10: ./dev data cifar10",
       .time = "about 24 hours on 2 cores; with --quick 10 minutes",
       .device = kLongOnGpu,
       .make = make_terngrad_table1},
      {.name = "terngrad-table2",
       .title = "TernGrad, Table 2: AlexNet, float against TernGrad with and without clipping",
       .data = "none: shapes of 224×224 are drawn; or --data images --data-dir DIR (CIFAR-10's 32×32 are too small). "
               "The paper's is ImageNet",
       .time = "weeks on 2 cores; with --quick 15 minutes, which is not long enough to learn",
       .device = kLongOnGpu,
       .make = make_terngrad_table2},
      {.name = "terngrad-table3",
       .title = "TernGrad, Table 3: GoogLeNet on ImageNet",
       .data = "ImageNet",
       .device = "GPU",
       .lacks = "needs GoogLeNet, not built yet"},
  };
  return entries;
}

}  // namespace tern
