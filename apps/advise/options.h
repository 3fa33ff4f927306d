#pragma once

#include <cstdint>
#include <string>

#include "tern/dist/comm/link.h"
#include "tern/networks/networks.h"

namespace tern::advise {

/// A command line of `advise`, read.
struct AdviceOptions {
  std::string model = "lenet";
  int64_t workers = 4;
  std::string link_text = "rate=1gbit,latency=0.1ms";
  Link link = {};
  int64_t batch_size = 0;  ///< images of all workers in a step
  int64_t local_steps = 10;
  int64_t ranks_per_machine = 1;
  int64_t threads = 0;    ///< of each rank
  double seconds = 1;     ///< that a measurement may take
  std::string text = {};  ///< to print instead, where it is not empty
};

/// What --model names; an InputError offers the nearest name if it names nothing.
networks::Variant find_model(const std::string& name);
/// An InputError says what a person has to put right.
AdviceOptions read_advice_options(int argc, const char* const* argv);

}  // namespace tern::advise
