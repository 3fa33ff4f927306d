#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <span>

#include "tern/core/atomic_file.h"
#include "tern/core/error.h"
#include "tern/core/program.h"
#include "tern/trainer/application.h"
#include "tern/trainer/job/program.h"
#include "tests/bench/measure.h"

namespace tern::bench {
namespace {

using namespace trainer;

std::regex read_pattern(const std::string& filter) {
  try {
    return std::regex(filter);
  } catch (const std::regex_error& error) {
    throw InputError(join({"--filter '", filter, "': ", error.what()}));
  }
}

std::vector<Case> cases_matching(const std::string& filter) {
  std::vector<Case> cases;
  add_training_steps(cases);
  add_loading(cases);
  add_photos(cases);
  add_updates(cases);
  add_products(cases);
  add_layers(cases);
  add_convolutions(cases);
  add_codecs(cases);
  add_operations(cases);
  add_methods(cases);
  const std::regex pattern = read_pattern(filter);
  std::erase_if(cases, [&](const Case& each) { return !std::regex_search(each.name, pattern); });
  check_input(!cases.empty(), "--filter '", filter, "': no benchmark has such a name");
  return cases;
}

void print_table(const std::vector<Result>& results) {
  fmt::print("{:<48} {:>10} {:>10} {:>6}  {}\n", "name", "median ms", "min ms", "n", "rate at the median");
  for (const Result& result : results) {
    const Work& work = result.measured->work;
    const double rate = work.amount / result.median() / 1e6;  // from units per ms to 10⁹ units per s
    fmt::print("{:<48} {:>10.3f} {:>10.3f} {:>6}  {}\n", result.measured->name, result.median(), result.minimum(),
               result.times.size(), work.amount == 0 ? "" : fmt::format("{:.1f} {}", rate, work.unit));
  }
}

void write_json(const std::vector<Result>& results, AtomicFile& file) {
  auto entries = nlohmann::json::array();
  for (const Result& result : results)
    entries.push_back({{"name", result.measured->name},
                       {"median_ms", result.median()},
                       {"min_ms", result.minimum()},
                       {"n", result.times.size()}});
  const std::string text = entries.dump(2) + '\n';
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

int run(int argc, char** argv) {
  std::string filter, json;
  int rounds = 5;
  CLI::App app("Times training steps and kernels; medians over interleaved rounds.", "bench");
  app.add_option("--filter", filter, "Only benchmarks whose name this regular expression finds");
  app.add_option("--json", json, "Also write the results to this file");
  app.add_option("--rounds", rounds, "How often all of them take their turn")->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return kDone;
  } catch (const CLI::ParseError& error) {
    throw InputError(error.what());
  }
  const auto cases = cases_matching(filter);
  std::optional<AtomicFile> file;
  if (!json.empty()) file.emplace(json);
  const auto results = measure(cases, rounds);
  print_table(results);
  if (file) write_json(results, *file);
  return kDone;
}

}  // namespace
}  // namespace tern::bench

int main(int argc, char** argv) {
  tern::wait_passively(argc, argv);
  return tern::run_application("bench", [&] { return tern::bench::run(argc, argv); });
}
