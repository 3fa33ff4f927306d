#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/quantization.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// Measures QSGD's Lemma 3.1 (Alistarh et al., 2017): mean, variance and non-zeros of Q_s(v), drawn by tern's codec
/// from vectors of several distributions and lengths. Compares them with equation (4) for the same vector and with the
/// bounds. Also measures the paper's presets (section 5).
class QsgdLemma31 final : public Experiment {
 public:
  /// A codec of section 5 on a Gaussian vector, with reference values that were calculated without tern.
  struct Preset {
    const char* spec;
    int64_t bucket, levels;
    bool by_maximum;
    double density;   ///< fraction of elements that are not zero
    double variance;  ///< relative to ‖v‖²
    double entropy;   ///< bits per element, without the scales
  };

  static constexpr int64_t kLong = 65536;
  static constexpr const char* kPresets = "presets";
  /// The results of a run for each s.
  static constexpr const char* kColumns[] = {"s",
                                             "along",
                                             "along_error",
                                             "mean_error",
                                             "variance",
                                             "variance_expected",
                                             "variance_bound",
                                             "nonzeros",
                                             "nonzeros_expected",
                                             "nonzeros_bound"};

  explicit QsgdLemma31(const ExperimentOptions& options);

  static std::span<const Preset> presets();
  static std::vector<int64_t> lengths() { return {1024, kLong}; }
  std::vector<Run> runs() const override;
  Report report(const Results& results) const override;

 private:
  static std::string run_name(Distribution distribution, int64_t n);

  int64_t draws_;
};

/// The powers of two from 1 to √n.
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

/// Markdown tables have every second power of two, the CSV file has all.
bool is_shown(double s) { return std::fmod(std::log2(s), 2) == 0; }

std::vector<std::string> row_of(Distribution distribution, const Numbers& numbers, size_t i) {
  const auto at = [&](const char* name) { return numbers.at(name)[i]; };
  const double mean_error = at("mean_error");
  return {to_string(distribution),
          fmt::format("{}", at("s")),
          fmt::format("{:.4f} ± {:.4f}", at("along"), at("along_error")),
          mean_error > 0 ? fmt::format("{:.3f}", mean_error) : "exact",
          fmt::format("{:.4g}", at("variance")),
          fmt::format("{:.4g}", at("variance_expected")),
          fmt::format("{:.4g}", at("variance_bound")),
          fmt::format("{:.0f} %", 100 * at("variance") / at("variance_bound")),
          fmt::format("{:.1f}", at("nonzeros")),
          fmt::format("{:.1f}", at("nonzeros_expected")),
          fmt::format("{:.0f}", at("nonzeros_bound")),
          fmt::format("{:.0f} %", 100 * at("nonzeros") / at("nonzeros_bound"))};
}

/// A line over log₂ s.
Series series_of(const Numbers& numbers, const std::string& name, const char* color) {
  Series series = {.label = "", .color = color, .points = {}};
  for (size_t i = 0; i < numbers.at(name).size(); ++i)
    if (numbers.at(name)[i] > 1e-9) series.points.emplace_back(std::log2(numbers.at("s")[i]), numbers.at(name)[i]);
  return series;
}

/// Dots are measured values, lines are equation (4), the bound is grey.
Chart chart_of(const char* title, const std::string& name, const std::vector<const Numbers*>& of_distributions) {
  Chart chart = {.title = title, .x_label = "levels s", .series = {}, .y_scale = Scale::logarithmic};
  for (size_t d = 0; d < of_distributions.size(); ++d) {
    if (of_distributions[d] == nullptr) continue;
    const Numbers& numbers = *of_distributions[d];
    if (chart.series.empty()) {
      for (const double s : numbers.at("s")) chart.x_ticks.emplace_back(std::log2(s), fmt::format("{}", s));
      chart.series.push_back(series_of(numbers, name + "_bound", kGrey));
      chart.series.back().label = "bound";
      chart.series.back().width = 4;
    }
    chart.series.push_back(series_of(numbers, name + "_expected", kPalette[d]));
    chart.series.back().label = to_string(distributions()[d]);
    chart.series.push_back(series_of(numbers, name, kPalette[d]));
    chart.series.back().width = 0;
    chart.series.back().markers = true;
  }
  return chart;
}

std::string presets_text(const Numbers& numbers) {
  std::vector<std::vector<std::string>> rows = {{"codec", "density", "calculated", "variance", "calculated",
                                                 "Lemma 3.1's bound", "bits by entropy", "calculated",
                                                 "bits sent, `code=fixed`"}};
  for (size_t i = 0; i < QsgdLemma31::presets().size(); ++i) {
    const auto& preset = QsgdLemma31::presets()[i];
    const auto bound = variance_bound(static_cast<double>(preset.bucket), static_cast<double>(preset.levels));
    rows.push_back({fmt::format("`{}`", preset.spec), fmt::format("{:.3f}", numbers.at("density")[i]),
                    fmt::format("{:.3f}", preset.density), fmt::format("{:.3g}", numbers.at("variance")[i]),
                    fmt::format("{:.3g}", preset.variance), preset.by_maximum ? "–" : fmt::format("{:.3g}", bound),
                    fmt::format("{:.3f}", numbers.at("entropy_bits")[i]), fmt::format("{:.3f}", preset.entropy),
                    fmt::format("{:.4f}", numbers.at("fixed_bits")[i])});
  }
  return fmt::format(
      "\n## The presets of section 5, Gaussian vector, n = {}\n\nThe number beside each result is a calculation "
      "without tern, for another Gaussian vector. Bits are for one element; with entropy coding they do not include "
      "the scales. The paper's example (section 4) has bucket 512 and 4 bits, and bounds the variance by √512 / 2⁴ = "
      "1.41. That is s = 16. If one of the 4 bits is the sign, s is 7, and the bound is 3.23. The lemma does not cover "
      "scaling by the maximum.\n\n{}",
      QsgdLemma31::kLong, markdown_table(rows));
}

std::string csv_of(const std::string& vector, int64_t n, const Numbers& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.at("s").size(); ++i) {
    text += fmt::format("{},{}", vector, n);
    for (const char* name : QsgdLemma31::kColumns) text += fmt::format(",{}", numbers.at(name)[i]);
    text += '\n';
  }
  return text;
}

Report QsgdLemma31::report(const Results& results) const {
  std::string text = fmt::format(
      "Each vector has n independent elements (constant: ±1). `--codec qsgd:levels=s,bucket=0,norm=l2` codes it {} "
      "times. (i) ⟨Q(v), v⟩ / ‖v‖² is 1 if Q is unbiased. ‖mean − v‖² is divided by what the variance leaves after so "
      "many draws, so it is about 1 if Q is unbiased. (ii) is E‖Q(v) − v‖² / ‖v‖², and (iii) is E‖Q(v)‖₀. Each has "
      "three numbers: as measured, by equation (4) for this very vector, and the bound. The bounds are min(n/s², √n/s) "
      "and s(s + √n).\n",
      draws_);
  std::string csv = "vector,n";
  for (const char* name : kColumns) csv += fmt::format(",{}", name);
  csv += '\n';
  std::vector<const Numbers*> longest;
  for (const int64_t n : lengths()) {
    std::vector<std::vector<std::string>> rows = {{"vector", "s", "(i) along v", "(i) ‖mean − v‖²", "(ii) variance",
                                                   "eq. (4)", "bound", "of it", "(iii) non-zeros", "eq. (4)", "bound",
                                                   "of it"}};
    for (const Distribution distribution : distributions()) {
      const auto found = results.find(run_name(distribution, n));
      if (n == kLong) longest.push_back(found == results.end() ? nullptr : &found->second.numbers);
      if (found == results.end()) continue;
      const Numbers& numbers = found->second.numbers;
      csv += csv_of(to_string(distribution), n, numbers);
      for (size_t i = 0; i < numbers.at("s").size(); ++i)
        if (is_shown(numbers.at("s")[i])) rows.push_back(row_of(distribution, numbers, i));
    }
    text += fmt::format("\n## n = {}\n\n{}", n, markdown_table(rows));
    if (n == kLong)
      text +=
          "\nA calculation without tern, for a Gaussian vector of this length, gives a variance of 205 and 206 "
          "non-zeros at s = 1, and a variance of 0.167 at s = 256.\n";
  }
  if (results.contains(kPresets)) text += presets_text(results.at(kPresets).numbers);
  const Chart charts[] = {chart_of("(ii) variance, relative to ‖v‖²", "variance", longest),
                          chart_of("(iii) elements that are not zero", "nonzeros", longest)};
  const std::string svg =
      draw_charts("QSGD, Lemma 3.1: tern's codec against the bounds",
                  fmt::format("n = {} · dots: {} draws each · lines: equation (4)", kLong, draws_), charts);
  return {.text = text, .figures = {{"lemma.svg", svg}}, .tables = {{"lemma.csv", csv}}};
}

}  // namespace

ExperimentEntry qsgd_lemma31() {
  return {.name = "qsgd-lemma3.1",
          .title = "QSGD, Lemma 3.1: mean, variance and sparsity of quantized vectors against their bounds",
          .data = "none",
          .time = "10 seconds",
          .make = make_experiment<QsgdLemma31>};
}

}  // namespace tern::reproduce
