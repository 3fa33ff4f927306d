#include "tern/trainer/run/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "tern/core/error.h"
#include "tern/dist/comm/in_process.h"
#include "tern/layers/embedding.h"
#include "tern/layers/linear_cross_entropy.h"
#include "tern/trainer/flags/rules.h"

namespace tern::trainer {
namespace {

/// The share of its memory that a slice may take: batches, activations and pieces in transfer need the rest.
constexpr double kShareOfSlice = 0.75;
/// What a worker's program, threads and buffers need, and the address space that they reserve. Both are more than was
/// measured, so the advice is cautious if little is left.
constexpr int64_t kProgram = 256 << 20, kProgramSpace = 512 << 20;

std::string gigabytes(int64_t bytes) { return fmt::format("{:.2f} GB", static_cast<double>(bytes) * 1e-9); }

/// The address space that this process has taken.
int64_t taken_address_space() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

/// The memory that processes can take without swapping; nothing if the system does not tell.
std::optional<int64_t> available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name;) {
    int64_t kilobytes = 0;
    if (name == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
    file.ignore(256, '\n');
  }
  return {};
}

/// The files of a control group that tell of its memory.
struct GroupFiles {
  const char *limit, *usage;
  const char* cached[2];  ///< lines of memory.stat: the kernel gives these files up before it refuses memory
};
constexpr GroupFiles kGroupVersion1 = {
    "memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}};
constexpr GroupFiles kGroupVersion2 = {"memory.max", "memory.current", {"inactive_file", "active_file"}};
constexpr int64_t kNoLimit = INT64_MAX / 2;  ///< version 1 has a number near INT64_MAX; version 2 has the word "max"

/// What one group leaves; nothing if it has no limit or no such files.
std::optional<int64_t> left_of_group(const std::filesystem::path& group, const GroupFiles& files) {
  int64_t limit = 0, usage = 0;
  if (!(std::ifstream(group / files.limit) >> limit) || limit >= kNoLimit) return {};
  if (!(std::ifstream(group / files.usage) >> usage)) return {};
  std::ifstream statistics(group / "memory.stat");
  int64_t bytes = 0;
  for (std::string name; statistics >> name >> bytes;)
    if (name == files.cached[0] || name == files.cached[1]) usage = std::max<int64_t>(0, usage - bytes);
  return std::max<int64_t>(0, limit - usage);
}

int64_t states_of(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::sgd: return 0;
    case UpdateRule::momentum:
    case UpdateRule::nesterov:
    case UpdateRule::muon: return 1;  // at least: adamw's other parameters have 2
    case UpdateRule::adam:
    case UpdateRule::adamw: return 2;
  }
  return 0;
}

/// Whether all rules are those of `Optimizer::by_blocks`.
bool by_blocks(const TrainSettings& s) {
  return (s.optimizer == UpdateRule::sgd || s.optimizer == UpdateRule::momentum ||
          s.optimizer == UpdateRule::nesterov) &&
         std::ranges::none_of(s.group, [&](const std::string& text) { return parse_group(text, s).rule.has_value(); });
}

/// Copies of a trained parameter of its size that a run needs, besides a gradient.
int64_t copies_of(const TrainSettings& s) { return 1 + (s.iterations == 0 ? 0 : states_of(s.optimizer)); }

/// The parameters whose whole gradients are never in memory.
std::set<std::string> without_whole_gradients(const TrainSettings& settings, Module& model, int ranks) {
  std::set<std::string> names;
  if (ranks > 1 && traits_of(settings.method).every_step) return names;
  const bool at_once = by_blocks(settings) && updates_in_backward(settings, ranks > 1);
  for (const auto& [name, module] : model.modules()) {
    const auto* const bag = dynamic_cast<const EmbeddingBag*>(module);
    const bool by_rows = bag != nullptr && bag->rows_of_gradient() == RowsOfGradient::touched;
    if (by_rows || (at_once && dynamic_cast<const LinearCrossEntropy*>(module) != nullptr))
      names.insert(name + ".weight");
  }
  return names;
}

/// The model's only hidden layer as cuts; nothing if it has none or several.
std::optional<SubnetCuts> only_layer(Module& model) {
  const auto* sliced = dynamic_cast<const SubnetModel*>(&model);
  const SubnetPlan plan = sliced ? sliced->subnet_plan(SubnetScope::fc) : SubnetPlan();
  if (plan.layers.size() != 1) return {};
  return SubnetCuts(plan, model.whole_shapes());
}

/// " ... would fit", if a sharded model would.
std::string advice(const TrainSettings& settings, Module& model, const MemoryLimit& limit) {
  const auto cuts = only_layer(model);
  if (!cuts) return "";
  // A worker then has the limit for itself.
  TrainSettings sharded = settings;
  sharded.method = TrainingMethod::ist;
  const auto room = std::min(static_cast<int64_t>(kShareOfSlice * static_cast<double>(limit.bytes)),
                             limit.bytes - (limit.of_machine ? kProgram : kProgramSpace));
  const auto most = static_cast<int>(std::min<int64_t>(kMaxRanks, cuts->widths().front()));
  for (int ranks = 2; ranks <= most; ++ranks) {
    const int64_t slice = least_bytes(sharded, model, &*cuts, ranks);
    if (slice > room) continue;
    return join({"; --method ist --ist-store sharded --transport socket would fit from --workers ", ranks,
                 limit.of_machine ? " on, each with as much memory of its own" : " on", ": each worker then keeps ",
                 gigabytes(slice), ", and needs room for its batches"});
  }
  return "";
}

}  // namespace

std::optional<int64_t> memory_of_groups(const std::filesystem::path& mount, const std::string& membership) {
  std::optional<int64_t> least;
  std::istringstream lines(membership);
  for (std::string number, controllers, path;
       std::getline(lines, number, ':') && std::getline(lines, controllers, ':') && std::getline(lines, path);) {
    const bool version2 = controllers.empty();
    if (!version2 && controllers.find("memory") == std::string::npos) continue;
    const std::filesystem::path root = version2 ? mount : mount / "memory";
    auto group = std::filesystem::path(path).relative_path();
    if (path.find("..") != std::string::npos) group.clear();  // outside of what this process sees
    for (;; group = group.parent_path()) {
      if (const auto left = left_of_group(root / group, version2 ? kGroupVersion2 : kGroupVersion1))
        least = std::min(*left, least.value_or(INT64_MAX));
      if (group.empty()) break;
    }
  }
  return least;
}

MemoryLimit memory_limit(const RanksHere& here) {
  MemoryLimit limit = {
      .bytes = available_memory().value_or(INT64_MAX), .ranks = here.of_machine, .source = "free on this machine"};
  std::ifstream membership("/proc/self/cgroup");
  const auto left_of_groups = memory_of_groups(
      "/sys/fs/cgroup", {std::istreambuf_iterator<char>(membership), std::istreambuf_iterator<char>()});
  if (left_of_groups && *left_of_groups < limit.bytes) {
    limit.bytes = *left_of_groups;
    limit.source = "left of the memory of this container or job (cgroup)";
  }
  rlimit space = {};
  if (::getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY) return limit;
  const int64_t left = static_cast<int64_t>(space.rlim_cur) - taken_address_space();
  if (left / here.of_process >= limit.bytes / limit.ranks) return limit;
  return {.bytes = left,
          .ranks = here.of_process,
          .source = "left of this process's address space (ulimit -v)",
          .of_machine = false};
}

bool updates_in_backward(const TrainSettings& s, bool has_ranks) {
  const bool exchanges_gradients = has_ranks && traits_of(s.method).every_step;
  return !exchanges_gradients && s.clip_norm == 0 && s.accumulate == 1 && s.histograms == 0;
}

int64_t least_bytes(const TrainSettings& settings, Module& model, const SubnetCuts* cuts, int ranks) {
  std::set<std::string> trained;
  for (const auto& parameter : model.trained_parameters()) trained.insert(parameter.name);
  const auto without = without_whole_gradients(settings, model, ranks);
  int64_t elements = 0;
  for (const auto& [name, shape] : model.whole_shapes()) {
    const bool cut = cuts != nullptr && cuts->find(name) != nullptr;
    const int64_t gradients = settings.iterations == 0 || without.contains(name) ? 0 : 1;
    const int64_t copies = trained.contains(name) ? gradients + copies_of(settings) : 1;
    elements += shape.numel() / (cut ? ranks : 1) * copies;
  }
  return elements * static_cast<int64_t>(sizeof(float));
}

void check_memory(const TrainSettings& settings, Module& model, const SubnetCuts* cuts, int ranks,
                  const MemoryLimit& limit) {
  if (settings.device != kCpu) return;
  const int64_t needed = limit.ranks * least_bytes(settings, model, cuts, ranks);
  if (needed <= limit.bytes) return;
  int64_t parameters = 0, gradients = 0;
  const auto without = without_whole_gradients(settings, model, ranks);
  const auto shapes = model.whole_shapes();
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    parameters += shapes[i].shape.numel();
    if (settings.iterations != 0 && !without.contains(shapes[i].name)) gradients += shapes[i].shape.numel();
  }
  const bool several = limit.ranks > 1, states = copies_of(settings) > 1;
  fail_input({"the model does not fit: its ", parameters, " parameters",
              gradients < parameters / 2 ? ""
              : states                   ? ", gradients"
                                         : " and their gradients",
              states ? " and the optimizer's state" : "",
              several ? join({", for ", limit.ranks, " workers on this machine,"}) : std::string(), " need ",
              cuts ? "" : "at least ", gigabytes(needed),
              !cuts     ? ""
              : several ? " for their slices"
                        : " for a slice",
              ", ", gigabytes(limit.bytes), " are ", limit.source, advice(settings, model, limit)});
}

}  // namespace tern::trainer
