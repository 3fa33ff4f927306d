#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "tern/apps/trainer/wait_policy.h"
#include "tern/core/error.h"
#include "tests/bench/measure.h"

namespace tern::bench {
namespace {

std::vector<Case> cases_matching(const std::string& filter) {
  std::vector<Case> cases;
  add_training_steps(cases);
  add_updates(cases);
  add_products(cases);
  add_layers(cases);
  add_convolutions(cases);
  add_codecs(cases);
  const std::regex pattern(filter);
  std::erase_if(cases, [&](const Case& each) { return !std::regex_search(each.name, pattern); });
  check_input(!cases.empty(), "--filter '", filter, "': no benchmark has such a name");
  return cases;
}

void print_table(const std::vector<Result>& results) {
  fmt::print("{:<48} {:>10} {:>10} {:>6}  {}\n", "name", "median ms", "min ms", "n", "rate at the median");
  for (const Result& result : results) {
    const Work& work = result.measured->work;
    const double rate = work.amount / result.median() / 1e6;  // per ms to giga per s
    fmt::print("{:<48} {:>10.3f} {:>10.3f} {:>6}  {}\n", result.measured->name, result.median(), result.minimum(),
               result.times.size(), work.amount == 0 ? "" : fmt::format("{:.1f} {}", rate, work.unit));
  }
}

void write_json(const std::vector<Result>& results, const std::string& path) {
  auto entries = nlohmann::json::array();
  for (const Result& result : results)
    entries.push_back({{"name", result.measured->name},
                       {"median_ms", result.median()},
                       {"min_ms", result.minimum()},
                       {"n", result.times.size()}});
  std::ofstream file(path);
  file << entries.dump(2) << '\n';
  check_input(file.good(), "--json '", path, "': cannot be written");
}

int run(int argc, char** argv) {
  std::string filter, json;
  int rounds = 5;
  CLI::App app("Times training steps and kernels; medians over interleaved rounds.", "bench");
  app.add_option("--filter", filter, "Only benchmarks whose name this regular expression finds");
  app.add_option("--json", json, "Also write the results to this file");
  app.add_option("--rounds", rounds, "How often all of them take their turn")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const auto cases = cases_matching(filter);
  const auto results = measure(cases, rounds);
  print_table(results);
  if (!json.empty()) write_json(results, json);
  return 0;
}

}  // namespace
}  // namespace tern::bench

int main(int argc, char** argv) {
  tern::wait_passively(argv);
  try {
    return tern::bench::run(argc, argv);
  } catch (const tern::InputError& error) {
    fmt::print(stderr, "bench: {}\n", error.what());
    return 2;
  } catch (const std::regex_error& error) {
    fmt::print(stderr, "bench: --filter: {}\n", error.what());
    return 2;
  }
}
