#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/apps/reproduce/engine/experiment.h"

namespace tern::reproduce {

/// A row of TernGrad's tables on ImageNet: a codec for the gradients, and what the paper changes with it.
struct ImageNetRow {
  const char *name, *title;  ///< in names of runs, and in the table
  const char* codec;         ///< value of --codec
  const char *weight_decay, *dropout;
  double accuracy;  ///< published, in percent
};

/// Rows with the same batch size.
struct ImageNetRows {
  int64_t workers, batch_size, steps;
  const char* lr;
  std::vector<ImageNetRow> rows;
};

/// One of these tables (Wen et al., 2017, section 4.2). Every row keeps a moving average of the parameters.
struct ImageNetTable {
  const char *name, *heading;         ///< "terngrad-table2", "TernGrad, Table 2: AlexNet"
  std::string program;                ///< program of the network
  std::vector<std::string> flags;     ///< flags of all rows
  const char* last_layer;             ///< names of parameters that no codec takes
  const char* score;                  ///< "top-5 accuracy"
  std::vector<std::string> data;      ///< choices for --data, the usual first
  int64_t quick_images, quick_steps;  ///< images of a worker's step, and steps, with --quick
  std::string setting;                ///< how the rows are trained; {} stands for the data
  const char* brief;                  ///< more sentences for a short form
  std::vector<ImageNetRows> groups;   ///< by number of workers
};

/// The table's runs. With --iterations N, the first group takes N steps, and the others take as many fewer as in the
/// paper. Throws InputError if the paper has no row for one of --workers.
std::unique_ptr<Experiment> make_imagenet_table(const ImageNetTable& table, const ExperimentOptions& options);

}  // namespace tern::reproduce
