#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/quantization.h"
#include "tern/apps/reproduce/subnet_masks.h"

namespace tern::reproduce {
namespace {

constexpr int kWorkers[] = {2, 4, 8};
constexpr const char* kTensors[] = {"layers.0.weight", "layers.1.weight", "layers.2.weight"};

std::string run_name(int workers) { return fmt::format("{}-workers", workers); }

Numbers sample(int workers, int64_t rounds, const StudyProgress& progress) {
  Numbers numbers;
  for (const MaskSample& mask : sample_masks(workers, rounds, kSeed, progress)) {
    numbers["share"].push_back(mask.share);
    numbers["along"].push_back(mask.along.mean);
    numbers["along_error"].push_back(mask.along.standard_error());
    numbers["mean_error"].push_back(mask.mean_error);
    numbers["variance"].push_back(mask.variance.mean);
    numbers["variance_error"].push_back(mask.variance.standard_error());
    numbers["least"].push_back(static_cast<double>(mask.least));
    numbers["most"].push_back(static_cast<double>(mask.most));
  }
  return numbers;
}

/// IST's Properties 1 and 2 (Yuan et al., 2019): tern's subnets are unbiased masks of the model, with their variance.
class IstProperties final : public Experiment {
 public:
  explicit IstProperties(const ExperimentOptions& options) : rounds_(options.quick ? 200 : 2000) {
    check_trains_nothing("ist-properties", options);
  }

  std::vector<Run> runs() const override {
    std::vector<Run> all;
    for (const int workers : kWorkers)
      all.push_back({.name = run_name(workers),
                     .flags = {fmt::format("workers={}", workers), fmt::format("rounds={}", rounds_)},
                     .places = {},
                     .steps = std::ssize(kTensors),
                     .columns = {{"workers", std::to_string(workers)}},
                     .study = [workers, rounds = rounds_](const StudyProgress& progress) {
                       return sample(workers, rounds, progress);
                     }});
    return all;
  }

  Report report(const Results& results) const override {
    std::string text = fmt::format(
        "A perceptron 32-64-64-8 is dealt out to n workers in {} rounds, by the partition that `--method ist` uses. "
        "M(x) keeps the elements of a tensor x that are in the first worker's subnet, times 1/ξ; the others are 0. ξ "
        "is their share: 1/n of a tensor with one hidden dimension, 1/n² of one with two. Property 1 is E M(x) = x: "
        "⟨M(x), x⟩ / ‖x‖² is 1, and ‖mean − x‖², divided by what the variance leaves after so many rounds, is about "
        "1. Property 2 is E ‖M(x) − x‖² = (1 − ξ)/ξ ‖x‖². The last column says how many workers train an element in a "
        "round.\n\n",
        rounds_);
    std::vector<std::vector<std::string>> rows = {
        {"n", "tensor", "ξ", "(1) along x", "(1) ‖mean − x‖²", "(2) variance", "(1 − ξ)/ξ", "workers of an element"}};
    for (const int workers : kWorkers)
      if (const auto found = results.find(run_name(workers)); found != results.end())
        add_rows(workers, found->second.numbers, rows);
    return {.text = text + markdown_table(rows), .figures = {}};
  }

 private:
  static void add_rows(int workers, const Numbers& numbers, std::vector<std::vector<std::string>>& rows) {
    for (size_t i = 0; i < std::size(kTensors); ++i) {
      const auto at = [&](const char* name) { return numbers.at(name)[i]; };
      const double share = at("share");
      rows.push_back({std::to_string(workers), kTensors[i], fmt::format("{:g}", share),
                      fmt::format("{:.4f} ± {:.4f}", at("along"), at("along_error")),
                      fmt::format("{:.3f}", at("mean_error")),
                      fmt::format("{:.4g} ± {:.2g}", at("variance"), at("variance_error")),
                      fmt::format("{:g}", (1 - share) / share), fmt::format("{} to {}", at("least"), at("most"))});
    }
  }

  int64_t rounds_;
};

}  // namespace

ExperimentEntry ist_properties() {
  return {.name = "ist-properties",
          .title = "IST, Properties 1 and 2: subnets are unbiased masks of the model, and their variance",
          .data = "none",
          .time = "5 seconds",
          .make = make_experiment<IstProperties>};
}

}  // namespace tern::reproduce
