#include "tern/apps/reproduce/qsgd_lemma31.h"

#include <fmt/format.h>

#include "tern/apps/reproduce/papers.h"
#include "tern/apps/reproduce/quantization_sample.h"
#include "tern/apps/reproduce/study_options.h"

namespace tern {
namespace {

constexpr uint64_t kSeed = 1;

/// Powers of two from 1 to √n.
std::vector<int64_t> levels_for(int64_t n) {
  std::vector<int64_t> levels;
  for (int64_t s = 1; s * s <= n; s *= 2) levels.push_back(s);
  return levels;
}

Numbers sample_levels(Distribution distribution, int64_t n, int64_t draws, const StudyProgress& progress) {
  const Tensor v = drawn_vector(distribution, n, kSeed);
  Numbers numbers;
  for (const int64_t s : levels_for(n)) {
    const auto codec = make_codec(fmt::format("qsgd:levels={},bucket=0,norm=l2", s));
    const QuantizationSample sample = sample_quantization(*codec, v, draws);
    const ExpectedQuantization expected = expected_quantization({.levels = s}, v);
    const auto length = static_cast<double>(n), levels = static_cast<double>(s);
    const double row[] = {levels,
                          sample.along.mean,
                          sample.along.standard_error(),
                          sample.mean_error,
                          sample.variance.mean,
                          expected.variance,
                          variance_bound(length, levels),
                          sample.nonzeros.mean,
                          expected.nonzeros,
                          nonzeros_bound(length, levels)};
    for (size_t i = 0; i < std::size(row); ++i) numbers[QsgdLemma31::kColumns[i]].push_back(row[i]);
    progress(static_cast<int64_t>(numbers["s"].size()));
  }
  return numbers;
}

Numbers sample_presets(int64_t draws, const StudyProgress& progress) {
  const Tensor v = drawn_vector(Distribution::gauss, QsgdLemma31::kLong, kSeed);
  const auto n = static_cast<double>(v.numel());
  Numbers numbers;
  for (const QsgdLemma31::Preset& preset : QsgdLemma31::presets()) {
    const QuantizationSample sample = sample_quantization(*make_codec(preset.spec), v, draws);
    std::vector<std::byte> fixed, entropy;
    const GradientTag tag = {"v", {.seed = kSeed, .purpose = Purpose::codec}};
    make_codec(preset.spec)->encode(tag, v, fixed);
    make_codec(std::string(preset.spec) + ",code=entropy")->encode(tag, v, entropy);
    const double scales = 32 / static_cast<double>(preset.bucket);
    numbers["density"].push_back(sample.nonzeros.mean / n);
    numbers["variance"].push_back(sample.variance.mean);
    numbers["entropy_bits"].push_back(8 * static_cast<double>(entropy.size()) / n - scales);
    numbers["fixed_bits"].push_back(8 * static_cast<double>(fixed.size()) / n);
    progress(static_cast<int64_t>(numbers["density"].size()));
  }
  return numbers;
}

}  // namespace

std::span<const QsgdLemma31::Preset> QsgdLemma31::presets() {
  static const Preset all[] = {
      {"qsgd:bits=2,bucket=128,norm=l2", 128, 1, false, .070, 7.98, 0.435},
      {"qsgd:bits=2,bucket=128,norm=max", 128, 1, true, .289, 1.26, 1.155},
      {"qsgd:bits=4,bucket=512,norm=l2", 512, 7, false, .246, 1.58, 1.054},
      {"qsgd:bits=4,bucket=512,norm=max", 512, 7, true, .817, .0357, 3.206},
      {"qsgd:bits=8,bucket=512,norm=l2", 512, 127, false, .927, .0053, 4.540},
      {"qsgd:bits=8,bucket=512,norm=max", 512, 127, true, .989, 1e-4, 7.355},
  };
  return all;
}

QsgdLemma31::QsgdLemma31(const ExperimentOptions& options) : draws_(options.quick ? 20 : 200) {
  check_trains_nothing("qsgd-lemma3.1", options);
}

std::string QsgdLemma31::run_name(Distribution distribution, int64_t n) {
  return fmt::format("{}-n-{}", to_string(distribution), n);
}

std::vector<Run> QsgdLemma31::runs() const {
  const std::string draws = fmt::format("draws={}", draws_);
  std::vector<Run> all;
  for (const int64_t n : lengths())
    for (const Distribution distribution : distributions())
      all.push_back({.name = run_name(distribution, n),
                     .flags = {fmt::format("vector={}", to_string(distribution)), fmt::format("n={}", n), draws},
                     .places = {},
                     .steps = static_cast<int64_t>(levels_for(n).size()),
                     .columns = {{"vector", to_string(distribution)}, {"n", std::to_string(n)}},
                     .study = [=, draws = draws_](const StudyProgress& progress) {
                       return sample_levels(distribution, n, draws, progress);
                     }});
  all.push_back({.name = kPresets,
                 .flags = {"vector=Gauss", fmt::format("n={}", kLong), draws},
                 .places = {},
                 .steps = static_cast<int64_t>(presets().size()),
                 .columns = {{"vector", to_string(Distribution::gauss)}, {"n", std::to_string(kLong)}},
                 .study = [draws = draws_](const StudyProgress& progress) { return sample_presets(draws, progress); }});
  return all;
}

std::unique_ptr<Experiment> make_qsgd_lemma31(const ExperimentOptions& options) {
  return std::make_unique<QsgdLemma31>(options);
}

}  // namespace tern
