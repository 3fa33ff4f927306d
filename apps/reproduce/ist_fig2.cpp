#include "tern/apps/reproduce/ist_fig2.h"

#include <fmt/format.h>

#include <set>

#include "tern/apps/reproduce/ist_ledger.h"
#include "tern/apps/reproduce/papers.h"
#include "tern/core/error.h"

namespace tern {
namespace {

constexpr int64_t kPaperWorkers[] = {1, 2, 4, 8, 16, 32};

std::string run_name(int64_t workers) { return fmt::format("counted-{}-workers", workers); }

}  // namespace

IstFigure2::IstFigure2(const ExperimentOptions& options) {
  check_input(options.data.empty() && options.data_dir.empty(), "--data would change nothing: ist-fig2 reads no files");
  check_input(!options.iterations, "--iterations would change nothing: ist-fig2 counts one round");
  check_input(!options.seeds, "--seeds would change nothing: ist-fig2 counts, and numbers do not differ");
  if (options.quick) costs_.widths = {100, 400, 400, 400, 20};
  const auto workers = options.workers.empty() ? std::vector<int64_t>{1, 2, 4, 8} : options.workers;
  std::set<int64_t> counted(workers.begin(), workers.end());
  check_input(*counted.begin() >= 1 && *counted.rbegin() <= 32, "--workers: found ",
              *counted.begin() < 1 ? *counted.begin() : *counted.rbegin(), ", expected 1 to 32");
  workers_.assign(counted.begin(), counted.end());
  counted.insert(std::begin(kPaperWorkers), std::end(kPaperWorkers));
  places_.assign(counted.begin(), counted.end());
}

std::vector<Run> IstFigure2::runs() const {
  std::vector<Run> all;
  for (const int64_t workers : workers_)
    all.push_back(
        {.name = run_name(workers),
         .flags = {fmt::format("widths={}", fmt::join(costs_.widths, ",")), fmt::format("batch={}", costs_.batch),
                   fmt::format("local-steps={}", costs_.local_steps), fmt::format("workers={}", workers)},
         .places = {},
         .steps = costs_.local_steps,
         .columns = {{"workers", std::to_string(workers)}},
         .study = [costs = costs_, workers](const StudyProgress& progress) {
           return count_ist_costs(costs, static_cast<int>(workers), progress);
         }});
  return all;
}

const Numbers* IstFigure2::counted(int64_t workers, const Results& results) const {
  const auto result = results.find(run_name(workers));
  return result == results.end() ? nullptr : &result->second.numbers;
}

std::unique_ptr<Experiment> make_ist_fig2(const ExperimentOptions& options) {
  return std::make_unique<IstFigure2>(options);
}

}  // namespace tern
