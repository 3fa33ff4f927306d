#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
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

/// Measures QSGD's Theorem 3.2 and Corollary 3.3 (Alistarh et al., 2017): the size of tern's messages for vectors of
/// several distributions and lengths, with each of its codes, against the bounds. Also measures the two forms of Elias
/// coding separately.
class QsgdTheorem32 final : public Experiment {
 public:
  /// The results of a run for each s: bits of a message, including the 32 bits of its norm.
  static constexpr const char* kColumns[] = {"s",     "fixed",   "elias_sparse",  "elias_dense",
                                             "elias", "entropy", "theorem_bound", "corollary_bound"};

  static constexpr int64_t kLengths[] = {1024, 4096, 65536};

  explicit QsgdTheorem32(const ExperimentOptions& options);

  std::vector<Run> runs() const override;
  Report report(const Results& results) const override;

 private:
  static std::string run_name(Distribution distribution, int64_t n);
  static std::string theorem_table(const Results& results);
  static std::string corollary_table(const Results& results);
  static std::string csv(const Results& results);
  static std::string figure(const Results& results);

  int64_t draws_;
};

/// Mean size of the codec's messages for `v`, in bits.
double mean_bits(const std::string& spec, const Tensor& v, int64_t draws) {
  const auto codec = make_codec(spec);
  double bits = 0;
  for (int64_t draw = 0; draw < draws; ++draw) {
    std::vector<std::byte> message;
    codec->encode({"v", {.seed = kSeed, .purpose = Purpose::codec, .step = static_cast<uint32_t>(draw)}}, v, message);
    bits += 8 * static_cast<double>(message.size()) / static_cast<double>(draws);
  }
  return bits;
}

Numbers measure_bits(Distribution distribution, int64_t n, int64_t draws, const StudyProgress& progress) {
  const Tensor v = drawn_vector(distribution, n, kSeed);
  const auto length = static_cast<double>(n);
  Numbers numbers;
  for (int64_t s = 1; s * s <= n; s *= 2) {
    const std::string spec = fmt::format("qsgd:levels={},bucket=0,norm=l2,code=", s);
    double sparse = 32, dense = 32;
    for (int64_t draw = 0; draw < draws; ++draw) {
      const EliasBits bits = elias_bits(drawn_levels(*make_codec(spec + "fixed"), v, static_cast<uint32_t>(draw)));
      sparse += static_cast<double>(bits.sparse) / static_cast<double>(draws);
      dense += static_cast<double>(bits.dense) / static_cast<double>(draws);
    }
    const auto levels = static_cast<double>(s);
    const double row[] = {levels,
                          mean_bits(spec + "fixed", v, draws),
                          sparse,
                          dense,
                          mean_bits(spec + "elias", v, draws),
                          mean_bits(spec + "entropy", v, draws),
                          theorem_bits(length, levels),
                          corollary_bits(length)};
    for (size_t i = 0; i < std::size(row); ++i) numbers[QsgdTheorem32::kColumns[i]].push_back(row[i]);
    progress(static_cast<int64_t>(numbers["s"].size()));
  }
  return numbers;
}

QsgdTheorem32::QsgdTheorem32(const ExperimentOptions& options) : draws_(options.quick ? 2 : 20) {
  check_trains_nothing("qsgd-thm3.2", options);
}

std::string QsgdTheorem32::run_name(Distribution distribution, int64_t n) {
  return fmt::format("{}-n-{}", to_string(distribution), n);
}

std::vector<Run> QsgdTheorem32::runs() const {
  std::vector<Run> all;
  for (const int64_t n : kLengths)
    for (const Distribution distribution : distributions())
      all.push_back(
          {.name = run_name(distribution, n),
           .flags = {fmt::format("vector={}", to_string(distribution)), fmt::format("n={}", n),
                     fmt::format("draws={}", draws_)},
           .places = {},
           .steps = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(n)) + 1) / 2,  // s = 1, 2, 4, … up to √n
           .columns = {{"vector", to_string(distribution)}, {"n", std::to_string(n)}},
           .study = [=, draws = draws_](const StudyProgress& progress) {
             return measure_bits(distribution, n, draws, progress);
           }});
  return all;
}

/// A code and its style in the figures.
struct Code {
  const char* column;
  const char* label;
  const char* color;
};
constexpr Code kCodes[] = {{"fixed", "fixed", kTeal},
                           {"elias_sparse", "Elias, sparse", kPurple},
                           {"elias_dense", "Elias, dense", kBlue},
                           {"entropy", "entropy", kOrange}};

double at(const Numbers& numbers, const char* name, size_t i) { return numbers.at(name)[i]; }

std::string verdict(double bits, double bound) {
  return fmt::format("{:+.1f} %{}", 100 * (bits / bound - 1), bits > bound ? ", **missed**" : "");
}

/// Bits per element over s for the Gaussian vector; both axes are logarithmic.
Chart curves(const Numbers& numbers, double n) {
  Chart chart = {.title = fmt::format("Gaussian vector, n = {}: bits per element", n),
                 .x_label = "levels s",
                 .series = {},
                 .y_scale = Scale::logarithmic};
  const auto add = [&](const char* column, const char* label, const char* color, double width) {
    Series series = {.label = label, .color = color, .points = {}, .width = width, .markers = width < 4};
    for (size_t i = 0; i < numbers.at("s").size(); ++i)
      if (at(numbers, "s", i) > 1 || width < 4)
        series.points.emplace_back(std::log2(at(numbers, "s", i)), at(numbers, column, i) / n);
    chart.series.push_back(series);
  };
  for (const double s : numbers.at("s")) chart.x_ticks.emplace_back(std::log2(s), fmt::format("{}", s));
  add("theorem_bound", "bound", kGrey, 4);
  for (const Code& code : kCodes) add(code.column, code.label, code.color, 2);
  return chart;
}

/// Bits per element at s = √n for each vector, with the corollary's bound.
Chart bars(const std::vector<std::pair<Distribution, const Numbers*>>& vectors, double n) {
  Chart chart = {
      .title = fmt::format("s = √n = {}: bits per element as sent", std::sqrt(n)), .x_label = "", .series = {}};
  double x = 0;
  for (const auto& [distribution, numbers] : vectors) {
    const size_t last = numbers->at("s").size() - 1;
    double place = x - 0.24;
    for (const Code& code : {kCodes[1], kCodes[2], kCodes[3]}) {
      const double bits = at(*numbers, code.column, last) / n;
      chart.series.push_back(
          {.label = x == 0 ? code.label : "", .color = code.color, .points = {{place, 0}, {place, bits}}, .width = 22});
      place += 0.24;
    }
    chart.x_ticks.emplace_back(x, to_string(distribution));
    x += 1;
  }
  chart.x_range = {-0.6, x - 0.4};
  chart.y_range = {0, 4.4};
  chart.series.push_back(
      {.label = "2.8 + 32/n", .color = kInk, .points = {{-0.6, 2.8 + 32 / n}, {x - 0.4, 2.8 + 32 / n}}, .width = 1.5});
  return chart;
}

std::string QsgdTheorem32::theorem_table(const Results& results) {
  std::vector<std::vector<std::string>> rows = {{"vector", "s", "Theorem 3.2", "Elias, sparse", "beside the bound",
                                                 "Elias, dense", "Elias as sent", "entropy as sent",
                                                 "beside the bound"}};
  for (const Distribution distribution : distributions()) {
    const auto found = results.find(run_name(distribution, kLengths[2]));
    if (found == results.end()) continue;
    const Numbers& numbers = found->second.numbers;
    for (size_t i = 0; i < numbers.at("s").size(); ++i) {
      const double s = at(numbers, "s", i);
      if (s != 2 && s != 16 && s != 256) continue;
      const double bound = at(numbers, "theorem_bound", i), sparse = at(numbers, "elias_sparse", i),
                   entropy = at(numbers, "entropy", i);
      const auto bits = [](double number) { return fmt::format("{:.0f}", number); };
      rows.push_back({to_string(distribution), bits(s), bits(bound), bits(sparse), verdict(sparse, bound),
                      bits(at(numbers, "elias_dense", i)), bits(at(numbers, "elias", i)), bits(entropy),
                      verdict(entropy, bound)});
    }
  }
  return markdown_table(rows);
}

std::string QsgdTheorem32::corollary_table(const Results& results) {
  std::vector<std::vector<std::string>> rows = {{"n", "vector", "2.8 + 32/n", "fixed width", "Elias, sparse",
                                                 "Elias, dense", "Elias as sent", "beside the bound", "entropy as sent",
                                                 "beside the bound"}};
  for (const int64_t n : kLengths)
    for (const Distribution distribution : distributions()) {
      const auto found = results.find(run_name(distribution, n));
      if (found == results.end()) continue;
      const Numbers& numbers = found->second.numbers;
      const size_t last = numbers.at("s").size() - 1;
      const auto bits = [&](const char* column) { return at(numbers, column, last) / static_cast<double>(n); };
      const auto cell = [&](const char* column) { return fmt::format("{:.3f}", bits(column)); };
      rows.push_back({std::to_string(n), to_string(distribution), cell("corollary_bound"), cell("fixed"),
                      cell("elias_sparse"), cell("elias_dense"), cell("elias"),
                      verdict(bits("elias"), bits("corollary_bound")), cell("entropy"),
                      verdict(bits("entropy"), bits("corollary_bound"))});
    }
  return markdown_table(rows);
}

std::string QsgdTheorem32::csv(const Results& results) {
  std::string text = "vector,n";
  for (const char* name : kColumns) text += fmt::format(",{}", name);
  text += '\n';
  for (const int64_t n : kLengths)
    for (const Distribution distribution : distributions()) {
      const auto found = results.find(run_name(distribution, n));
      if (found == results.end()) continue;
      for (size_t i = 0; i < found->second.numbers.at("s").size(); ++i) {
        text += fmt::format("{},{}", to_string(distribution), n);
        for (const char* name : kColumns) text += fmt::format(",{}", found->second.numbers.at(name)[i]);
        text += '\n';
      }
    }
  return text;
}

std::string QsgdTheorem32::figure(const Results& results) {
  constexpr int64_t kLong = kLengths[2];
  std::vector<std::pair<Distribution, const Numbers*>> vectors;
  for (const Distribution distribution : distributions())
    if (const auto found = results.find(run_name(distribution, kLong)); found != results.end())
      vectors.emplace_back(distribution, &found->second.numbers);
  const std::vector<Chart> charts = vectors.empty()
                                        ? std::vector{Chart()}
                                        : std::vector{curves(*vectors.front().second, kLong), bars(vectors, kLong)};
  return draw_charts("QSGD, Theorem 3.2 and Corollary 3.3: bits of a message",
                     "a float takes 32 · every code carries the same levels", charts);
}

Report QsgdTheorem32::report(const Results& results) const {
  std::string text = fmt::format(
      "The tables have the bits of the messages that tern sends for one vector (constant: elements of ±1). They are "
      "means of {} draws, and include the 32 bits of the norm. `fixed`, `elias` and `entropy` are `--codec "
      "qsgd:levels=s,bucket=0,norm=l2,code=...`. `elias` sends the shorter of two forms, in whole bytes, after a bit "
      "that says which. The sparse form is section 3.1's code after a count of the non-zeros, because the paper has no "
      "end mark. The paper leaves the dense form to its full version. Here it codes each size plus 1, and a sign "
      "unless the size is zero.\n\n## Theorem 3.2, n = {}, bits of a message\n\nThe theorem bounds an expectation up "
      "to o(1). Here o(1) counts as 0, so a miss of some percent does not contradict the theorem.\n\n",
      draws_, kLengths[2]);
  text += theorem_table(results);
  text +=
      "\n## Corollary 3.3, s = √n, bits of an element\n\nThe corollary promises that there is a code of 2.8n + 32 bits "
      "or fewer. Elias' code as the paper writes it meets this on some vectors and misses it on others. tern's entropy "
      "coder, with its table and headers, is the code that meets it.\n\n";
  text += corollary_table(results);
  return {.text = text, .figures = {{"bits.svg", figure(results)}}, .tables = {{"bits.csv", csv(results)}}};
}

}  // namespace

ExperimentEntry qsgd_thm32() {
  return {.name = "qsgd-thm3.2",
          .title = "QSGD, Theorem 3.2 and Corollary 3.3: bits of a message against their bounds",
          .data = "none",
          .time = "seconds",
          .make = make_experiment<QsgdTheorem32>};
}

}  // namespace tern::reproduce
