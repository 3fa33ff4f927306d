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
       .lacks = "not built yet"},
      {.name = "terngrad-fig3",
       .title = "TernGrad, Figure 3: LeNet on MNIST, accuracy over the number of workers",
       .data = "MNIST: ./dev data mnist",
       .time = "about 2.5 hours on 2 cores; with --quick 3 minutes",
       .make = make_terngrad_fig3},
      {.name = "terngrad-fig4",
       .title = "TernGrad, Figure 4: accuracy, training loss and sparsity of gradients over iterations",
       .data = "CIFAR-10: ./dev data cifar10",
       .lacks = "not built yet"},
      {.name = "terngrad-fig5",
       .title = "TernGrad, Figure 5: training throughput on two clusters, up to 512 GPUs",
       .data = "none",
       .lacks = "needs the performance model, not built yet"},
      {.name = "terngrad-table1",
       .title = "TernGrad, Table 1: CifarNet on CIFAR-10, 2 workers and 16",
       .data = "CIFAR-10: ./dev data cifar10",
       .device = "GPU for its full length",
       .lacks = "not built yet"},
      {.name = "terngrad-table2",
       .title = "TernGrad, Table 2: AlexNet, float against TernGrad with and without clipping",
       .data = "a folder of images; the paper's is ImageNet",
       .device = "GPU for its full length",
       .lacks = "not built yet"},
      {.name = "terngrad-table3",
       .title = "TernGrad, Table 3: GoogLeNet on ImageNet",
       .data = "ImageNet",
       .device = "GPU",
       .lacks = "needs GoogLeNet, not built yet"},
  };
  return entries;
}

}  // namespace tern
