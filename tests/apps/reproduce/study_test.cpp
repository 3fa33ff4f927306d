#include <gtest/gtest.h>

#include <limits>

#include "tern/apps/reproduce/engine/reproduction.h"
#include "tern/core/error.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace tern::reproduce {
namespace {

int times_computed = 0;
double found = 0;
std::string precision = "high";

/// An experiment that computes the squares of 1, 2 and 3, and copies the value of `found`.
class Squares final : public Experiment {
 public:
  std::vector<Run> runs() const override {
    std::vector<Run> all;
    for (const char* n : {"1", "2", "3"})
      all.push_back({.name = n,
                     .flags = {"n", n, "precision", precision},
                     .places = {},
                     .columns = {{"n", n}},
                     .study = [n](const StudyProgress&) {
                       ++times_computed;
                       return Numbers{{"square", {std::stod(n) * std::stod(n)}}, {"found", {found}}};
                     }});
    return all;
  }
  Report report(const Results& results) const override {
    std::string text;
    for (const auto& [name, result] : results) text += name + "² = " + std::to_string(result.numbers.at("square")[0]);
    return {.text = text, .figures = {}, .tables = {{"squares.csv", "n,square\n"}}};
  }
};

void reproduce_squares(const std::filesystem::path& folder, const std::string& kept = "") {
  const ExperimentEntry entry = {
      .name = "squares", .title = "Squares", .data = "none", .make = [](const auto&) -> std::unique_ptr<Experiment> {
        return std::make_unique<Squares>();
      }};
  ReproduceCommand command;
  command.name = "squares";
  command.folder = folder;
  command.kept = kept;
  testing::internal::CaptureStdout();
  trainer::Console console;
  Reproduction(entry, command, console).run();
  EXPECT_NE(testing::internal::GetCapturedStdout().find("3² = 9.0"), std::string::npos);
}

TEST(ReproduceStudy, IsComputedOnceAndKeptInTheFolder) {
  const TemporaryFolder folder;
  const auto results = folder.path() / "results";
  times_computed = 0;
  found = 0.1;
  reproduce_squares(results);
  EXPECT_EQ(times_computed, 3);
  const std::string page = read_file(results / "README.md");
  EXPECT_NE(page.find("2² = 4.0"), std::string::npos) << page;
  EXPECT_NE(page.find("[squares.csv](squares.csv)"), std::string::npos) << page;
  EXPECT_EQ(page.find("It runs"), std::string::npos) << page;
  EXPECT_NE(page.find(" s of work on "), std::string::npos) << page;
  EXPECT_NE(page.find("`runs/` has their numbers."), std::string::npos) << page;
  EXPECT_EQ(read_file(results / "squares.csv"), "n,square\n");
  EXPECT_NE(read_file(results / "runs.csv").find("\n2,2,0,,,"), std::string::npos);

  reproduce_squares(results);
  EXPECT_EQ(times_computed, 3) << "a table that is whole was computed again";
  std::filesystem::remove(results / "runs" / "2" / "numbers.json");
  reproduce_squares(results);
  EXPECT_EQ(times_computed, 4);
}

// The names of these runs do not tell their flags.
TEST(ReproduceStudy, NeverReplacesAKeptResultOfOtherFlags) {
  const TemporaryFolder folder;
  const auto kept = folder.path() / "kept", other = folder.path() / "other";
  found = 0.1;
  reproduce_squares(folder.path() / "results", kept);
  const std::string whole = read_file(kept / "2.json");
  precision = "low";
  reproduce_squares(other);
  EXPECT_EQ(message_of<InputError>([&] { reproduce_squares(other, kept); }),
            (kept / "1.json").string() + ": keeps the result of ' n 1 precision high', expected ' n 1 precision low'");
  testing::internal::GetCapturedStdout();
  precision = "high";
  EXPECT_EQ(read_file(kept / "2.json"), whole);
}

TEST(ReproduceStudy, IsComputedAnewWhereItsNumbersAreBroken) {
  const TemporaryFolder folder;
  const auto results = folder.path() / "results";
  found = 0.1;
  reproduce_squares(results);
  const auto numbers = results / "runs" / "2" / "numbers.json";
  const std::string whole = read_file(numbers);
  std::string altered = whole;
  altered.replace(altered.find("[4.0]"), 5, "[5.0]");
  times_computed = 0;
  for (const std::string& broken : {std::string(), whole.substr(0, whole.size() / 2), std::string("[1, 2]"),
                                    std::string(R"({"seconds": 1, "numbers": {"square": [null]}})"),
                                    std::string(R"({"seconds": 1, "numbers": {}})"), altered}) {
    write_file(numbers, broken);
    reproduce_squares(results);
    EXPECT_NE(read_file(results / "README.md").find("2² = 4.0"), std::string::npos) << broken;
  }
  EXPECT_EQ(times_computed, 6);
}

TEST(ReproduceStudy, IsComputedAnewWhereAFolderHasTheNameOfItsNumbers) {
  const TemporaryFolder folder;
  const auto results = folder.path() / "results", numbers = results / "runs" / "2" / "numbers.json";
  found = 0.1;
  reproduce_squares(results);
  std::filesystem::remove(numbers);
  std::filesystem::create_directory(numbers);
  times_computed = 0;
  reproduce_squares(results);
  EXPECT_EQ(times_computed, 1);
  EXPECT_TRUE(std::filesystem::is_regular_file(numbers));

  std::filesystem::remove(numbers);
  std::filesystem::create_directory(numbers);
  write_file(numbers / "of_others", "precious");
  EXPECT_THROW(reproduce_squares(results), InputError);
  testing::internal::GetCapturedStdout();
  EXPECT_EQ(times_computed, 1) << "what cannot be kept was computed";
  EXPECT_EQ(read_file(numbers / "of_others"), "precious");
}

TEST(ReproduceStudy, KeepsNoNumbersThatAreNotFinite) {
  const TemporaryFolder folder;
  found = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(reproduce_squares(folder.path()), Error);
  testing::internal::GetCapturedStdout();
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "runs" / "1" / "numbers.json"));
}

}  // namespace
}  // namespace tern::reproduce
