#include "tern/apps/reproduce/qsgd_thm32.h"

#include <fmt/format.h>

#include "tern/apps/reproduce/code_sizes.h"
#include "tern/apps/reproduce/papers.h"
#include "tern/apps/reproduce/study_options.h"

namespace tern {
namespace {

constexpr uint64_t kSeed = 1;

/// Of the messages that a codec makes of `v`, on average.
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

}  // namespace

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
      all.push_back({.name = run_name(distribution, n),
                     .flags = {fmt::format("vector={}", to_string(distribution)), fmt::format("n={}", n),
                               fmt::format("draws={}", draws_)},
                     .places = {},
                     .columns = {{"vector", to_string(distribution)}, {"n", std::to_string(n)}},
                     .study = [=, draws = draws_](const StudyProgress& progress) {
                       return measure_bits(distribution, n, draws, progress);
                     }});
  return all;
}

std::unique_ptr<Experiment> make_qsgd_thm32(const ExperimentOptions& options) {
  return std::make_unique<QsgdTheorem32>(options);
}

}  // namespace tern
