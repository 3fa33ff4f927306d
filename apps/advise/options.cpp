#include "tern/apps/advise/options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>

#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/dist/comm/in_process.h"
#include "tern/trainer/flags/words.h"
#include "tern/trainer/rank/machine.h"

namespace tern::advise {
namespace {

using namespace trainer;

constexpr int64_t kLeastWorkers = 2, kMostWorkers = 4096, kImagesOfWorker = 16;
constexpr double kMostSeconds = 3600;

/// Reads a link, which must have a rate.
Link read_link(const std::string& text) {
  try {
    const Link link = parse_link(text);
    check_input(link.bytes_per_second > 0, "link '", text, "' has no rate, expected rate=1gbit");
    return link;
  } catch (const InputError& error) {
    throw InputError(join({"--link: ", error.what()}));
  }
}

void check_range(const char* flag, int64_t found, int64_t low, int64_t high) {
  check_input(found >= low && found <= high, flag, ": found ", found, ", expected ", low, " to ", high);
}

/// Sets the options that depend on others, and checks all. If `batch_size` or `threads` is not given, chooses a
/// default.
void complete(AdviceOptions& options, std::optional<int64_t> batch_size, std::optional<int64_t> threads) {
  find_model(options.model);
  options.link = read_link(options.link_text);
  check_range("--workers", options.workers, kLeastWorkers, kMostWorkers);
  options.batch_size = batch_size.value_or(kImagesOfWorker * options.workers);
  check_range("--batch-size", options.batch_size, 1, 1'000'000);
  check_input(options.batch_size % options.workers == 0, "--batch-size: found ", options.batch_size,
              ", expected a multiple of ", options.workers, ", so that the workers share it equally");
  check_range("--local-steps", options.local_steps, 1, 1'000'000);
  check_range("--ranks-per-machine", options.ranks_per_machine, 1, kMaxRanks);
  check_input(options.ranks_per_machine <= options.workers, "--ranks-per-machine: found ", options.ranks_per_machine,
              ", expected ", options.workers, " or fewer: there are no more --workers");
  options.threads =
      threads.value_or(std::max<int64_t>(1, thread_count() / static_cast<int>(options.ranks_per_machine)));
  check_range("--threads", options.threads, 1, 1024);
  check_input(options.seconds > 0 && options.seconds <= kMostSeconds, "--seconds: found ", options.seconds,
              ", expected a number above 0, ", kMostSeconds, " or less");
}

}  // namespace

networks::Variant find_model(const std::string& name) {
  try {
    return networks::find_variant(name);
  } catch (const InputError& error) {
    throw InputError(join({"--model: ", error.what()}));
  }
}

AdviceOptions read_advice_options(int argc, const char* const* argv) {
  AdviceOptions options;
  std::string names;
  for (const auto& [network, preset] : networks::variants()) names += join({names.empty() ? "" : ", ", preset.name});
  CLI::App app(
      "Says how workers should train together: which method, codec and exchange are fastest on a network. It computes "
      "the times from what each method sends and from short runs of the network on this machine. Three passes show how "
      "far to trust them. It also says when compression does not pay. `advise postmortem DIR` says why a job failed.",
      "advise");
  add_value_option(app, "--model", "NAME", options.model, "Network [lenet]: " + names);
  add_value_option(app, "--workers", "N", options.workers, "Ranks that train together, 2 to 4096 [4]");
  add_value_option(
      app, "--link", "LINK", options.link_text,
      "Network link of each worker: 100mbit, or rate=1gbit,latency=0.2ms. If this machine copies more slowly from rank "
      "to rank, the time of its copies counts, and the page says so [rate=1gbit,latency=0.1ms]");
  std::optional<int64_t> batch_size, threads;
  add_value_option(app, "--batch-size", "N", batch_size, "Images of all workers in a step [16 for each]");
  add_value_option(app, "--local-steps", "N", options.local_steps,
                   "Steps that a rank trains alone between two exchanges, for methods with local steps [10]");
  add_value_option(app, "--ranks-per-machine", "N", options.ranks_per_machine,
                   "Ranks that share a machine; as many run here side by side [1]");
  add_value_option(app, "--threads", "N", threads, "Threads of each rank [the cores, shared by a machine's ranks]");
  add_value_option(app, "--seconds", "X", options.seconds,
                   "Time limit of each of about 30 measurements, in three passes [1]");
  app.add_flag("--all", options.all, "Show all exchanges of each method and codec, with and without overlap");
  if (const auto text = parse_words(app, argc, argv, version_text("advise"))) {
    options.text = *text;
    return options;
  }
  complete(options, batch_size, threads);
  return options;
}

}  // namespace tern::advise
