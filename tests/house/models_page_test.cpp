#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

// docs/models.md and the headers name the same things.

namespace tern {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(fs::path(TERN_SOURCE_DIR) / path).rdbuf();
  EXPECT_FALSE(text.str().empty()) << path;
  return text.str();
}

std::string headers_in(const char* folder) {
  std::string text;
  for (const auto& entry : fs::directory_iterator(fs::path(TERN_SOURCE_DIR) / folder))
    if (entry.path().extension() == ".h") text += text_of(fs::path(folder) / entry.path().filename());
  return text;
}

/// The first group of every match.
std::set<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern, std::regex::ECMAScript | std::regex::multiline);
  std::set<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i) found.insert((*i)[1]);
  return found;
}

/// The rows of the tables under a heading of docs/models.md: the cells of each.
std::vector<std::vector<std::string>> table_rows(const std::string& heading) {
  const std::string page = text_of("docs/models.md");
  const size_t begin = page.find("\n## " + heading + "\n");
  EXPECT_NE(begin, std::string::npos) << heading;
  const size_t end = page.find("\n## ", begin + 1);
  std::istringstream lines(page.substr(begin, end == std::string::npos ? end : end - begin));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ") || line.starts_with("| tern |") || line.starts_with("| call |")) continue;
    std::vector<std::string> cells;
    for (size_t at = 1; at < line.size();) {
      const size_t bar = line.find(" |", at);
      cells.push_back(line.substr(at, bar - at));
      at = bar == std::string::npos ? line.size() : bar + 2;
    }
    rows.push_back(cells);
  }
  return rows;
}

/// A name before a bracket, in code.
const char* const kCall = R"((?:`|, )([a-z_0-9]+)\()";

/// What the first cells of the tables under the headings call: names before a bracket, in code.
std::set<std::string> called(std::initializer_list<const char*> headings) {
  std::set<std::string> names;
  for (const char* heading : headings)
    for (const auto& row : table_rows(heading)) names.merge(matches(row.at(0), kCall));
  return names;
}

void expect_same(const std::set<std::string>& page, const std::set<std::string>& headers) {
  for (const auto& name : headers) EXPECT_TRUE(page.contains(name)) << "docs/models.md lacks " << name;
  for (const auto& name : page) EXPECT_TRUE(headers.contains(name)) << "no header declares " << name;
}

const char* const kFunction =
    R"(^(?:inline )?(?:Variable|Tensor|[A-Za-z]+Output|std::vector<Variable>) ([a-z_0-9]+)\()";

TEST(ModelsPage, NamesEveryOperationAndNoOther) {
  std::set<std::string> declared = matches(text_of("autograd/functional.h"), kFunction);
  EXPECT_GE(declared.size(), 60);
  expect_same(called({"Operations", "Losses"}), declared);
}

TEST(ModelsPage, NamesEveryInitializerAndScheduleAndNoOther) {
  expect_same(called({"Initializers"}), matches(text_of("layers/initialize.h"), R"(^Initializer ([a-z_]+)\()"));
  expect_same(called({"Schedules"}), matches(text_of("optim/schedule.h"), R"(^Schedule ([a-z_]+)\()"));
}

/// The fields of `struct Options` in a class: the names before " = " or ";".
std::set<std::string> fields_of(const std::string& text) {
  std::set<std::string> fields;
  const size_t begin = text.find("struct Options {"), end = text.find("\n  };", begin);
  if (begin == std::string::npos) return fields;
  const std::string body = std::regex_replace(text.substr(begin, end - begin), std::regex("//[^\n]*"), "");
  return matches(body, R"((?:[ ,])([a-z_0-9]+) = )");
}

TEST(ModelsPage, NamesEveryLayerWithItsOptionsAndNoOther) {
  std::map<std::string, std::string> rows;  // the row of each layer that a first cell names
  for (const auto& row : table_rows("Layers")) {
    std::string text;
    for (const auto& cell : row) text += cell;
    for (const auto& name : matches(row.at(0), R"(`([A-Z][A-Za-z0-9]*)`)")) rows[name] = text;
  }
  rows.erase("Module");  // what a layer is that is no Layer
  const std::string headers = headers_in("layers");
  const std::regex begin(R"(\n(?:class|struct) ([A-Z][A-Za-z0-9]*)(?: final)? : public (?:Layer|Module|BatchNorm))");
  std::set<std::string> declared;
  for (std::sregex_iterator i(headers.begin(), headers.end(), begin), end; i != end; ++i) {
    const std::string name = (*i)[1], text = headers.substr(static_cast<size_t>(i->position()));
    declared.insert(name);
    if (name == "Layer") continue;
    ASSERT_TRUE(rows.contains(name)) << "docs/models.md lacks the layer " << name;
    const size_t next = text.find("\n};");
    for (const std::string& field : fields_of(text.substr(0, next))) {
      const bool initializer = field.ends_with("_initializer");
      EXPECT_TRUE(std::regex_search(rows[name], std::regex("\\." + field + "\\b")) || initializer)
          << name << " has the option " << field;
    }
  }
  declared.erase("Layer");
  declared.merge(matches(headers, R"(^using ([A-Z][A-Za-z0-9]*) = BatchNorm;)"));
  EXPECT_GE(declared.size(), 20);
  for (const auto& [name, row] : rows) EXPECT_TRUE(declared.contains(name)) << "no header declares the layer " << name;
}

TEST(ModelsPage, NamesEveryOptimizer) {
  const std::set<std::string> declared =
      matches(headers_in("optim"), R"(^class ([A-Z][A-Za-z]*) final : public Optimizer)");
  EXPECT_EQ(declared, (std::set<std::string>{"Adam", "Muon", "Sgd"}));
  std::set<std::string> named;
  for (const auto& row : table_rows("Optimizers")) named.merge(matches(row.at(0), R"(`([A-Z][A-Za-z]*)\()"));
  for (const auto& name : declared) EXPECT_TRUE(named.contains(name)) << name;
}

TEST(ModelsPage, FindsWhatARowCalls) {
  EXPECT_EQ(matches("| `add(a, b)`, `sub(a, b)`, or `+` |", kCall), (std::set<std::string>{"add", "sub"}));
  EXPECT_EQ(
      fields_of("class X {\n  struct Options {\n    int64_t in = 1, out = 2;  ///< a = b\n    bool bias = true;\n  };"),
      (std::set<std::string>{"in", "out", "bias"}));
}

}  // namespace
}  // namespace tern
