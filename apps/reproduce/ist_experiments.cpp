#include "tern/apps/reproduce/papers.h"

namespace tern {

// Yuan et al., "Distributed Learning of Neural Networks using Independent Subnet Training", 2019.
std::span<const ExperimentEntry> ist_experiments() {
  static const ExperimentEntry entries[] = {
      {.name = "ist-fig1",
       .title = "IST, Figure 1: a network decomposed into three subnets",
       .data = "none",
       .lacks = "it is a diagram, with nothing to measure"},
      {.name = "ist-fig2",
       .title = "IST, Figure 2: traffic and operations of a step by number of machines",
       .data = "none",
       .time = "1 minute on 2 cores; with --quick seconds",
       .make = make_ist_fig2},
      {.name = "ist-fig3",
       .title = "IST, Figure 3: speed of an epoch by number of workers, for several numbers of local steps",
       .data = "tones, drawn; the paper's is Google Speech Commands",
       .time = "6 minutes on 2 cores; with --quick 25 seconds",
       .device = kAnyDevice,
       .make = make_ist_fig3},
      {.name = "ist-fig4",
       .title = "IST, Figure 4: test accuracy over time, data parallel, local SGD and IST",
       .data = "tones, drawn, and with --data-dir CIFAR-10: ./dev data cifar10",
       .time = "tones 12 minutes on 2 cores, ResNet-18 a day; with --quick 1 and 8 minutes",
       .device = kAnyDevice,
       .make = make_ist_fig4},
      {.name = "ist-table1",
       .title = "IST, Table 1: seconds to levels of accuracy",
       .data = "tones, drawn, and with --data-dir CIFAR-10: ./dev data cifar10",
       .time = "tones 40 minutes on 2 cores, ResNet-18 days; with --quick 3 and 7 minutes",
       .device = kAnyDevice,
       .make = make_ist_table1},
      {.name = "ist-table2",
       .title = "IST, Table 2: precision on Amazon-670k by embedding dimension",
       .data = "Amazon-670k",
       .device = "GPU",
       .lacks = "needs a reader of Amazon-670k, not built yet"},
      {.name = "ist-table3",
       .title = "IST, Table 3: final accuracy on 2 workers",
       .data = "tones, drawn, and with --data-dir CIFAR-10: ./dev data cifar10",
       .time = "tones 18 minutes on 2 cores, ResNet-18 a day; with --quick 2 and 7 minutes",
       .device = kAnyDevice,
       .make = make_ist_table3},
  };
  return entries;
}

}  // namespace tern
