#pragma once

#include <cstdint>
#include <string>

#include "tern/dist/comm/link.h"
#include "tern/networks/networks.h"

namespace tern::advise {

/// The options of an `advise` command line.
struct AdviceOptions {
  std::string model = "lenet";
  int64_t workers = 4;
  std::string link_text = "rate=1gbit,latency=0.1ms";
  Link link = {};
  int64_t batch_size = 0;  ///< images of all workers per step
  int64_t local_steps = 10;
  int64_t ranks_per_machine = 1;
  int64_t threads = 0;    ///< threads of each rank
  double seconds = 1;     ///< time limit of a measurement
  bool all = false;       ///< show all exchanges of each method and codec, not the fastest
  std::string text = {};  ///< if not empty: only print this
};

/// The preset that --model names. If there is none, throws InputError with the nearest name.
networks::Variant find_model(const std::string& name);
/// Reads and checks the command line. Throws InputError if it is wrong.
AdviceOptions read_advice_options(int argc, const char* const* argv);

}  // namespace tern::advise
