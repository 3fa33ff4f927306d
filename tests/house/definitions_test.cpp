#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace tern {
namespace {

namespace fs = std::filesystem;

/// For each type and constant, by its full name such as "tern::detail::Socket": the files that define it.
using Definitions = std::map<std::string, std::set<std::string>>;

/// Adds the types and inline constants that `text` defines in a namespace. The formatter starts these definitions in
/// the first column.
void add_definitions(const std::string& file, const std::string& text, Definitions& definitions) {
  static const std::regex opens(R"(^(inline )?namespace ([\w:]*) ?\{)"), closes(R"(^\}  // namespace.*)"),
      type(R"(^(struct|class|enum class) (\w+)( final)?( :[^;]*| \{.*)$)"), alias(R"(^(using) (\w+) =.*)"),
      constant(R"(^inline (constexpr|constinit) .*?(\w+)(\[\w*\])?( =|\{).*)");
  std::vector<std::string> within;
  std::istringstream lines(text);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, opens)) {
      within.push_back(match[2]);
    } else if (std::regex_match(line, closes)) {
      within.pop_back();
    } else if (std::regex_match(line, match, type) || std::regex_match(line, match, alias) ||
               std::regex_match(line, match, constant)) {
      std::string name;
      for (const std::string& outer : within) name += outer + "::";
      definitions[name + match[2].str()].insert(file);
    }
  }
}

// If one program has two headers that define one name differently, its behaviour is undefined. A folder `no_...` takes
// the place of another folder, so no program has headers of both.
TEST(Definitions, GiveEachTypeOneHeader) {
  const fs::path root = TERN_SOURCE_DIR;
  Definitions definitions;
  for (const char* folder : {"core", "kernels", "autograd", "layers", "optim", "data", "dist", "apps"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".h" || entry.path().parent_path().filename().string().starts_with("no_"))
        continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      add_definitions(fs::relative(entry.path(), root), text.str(), definitions);
    }
  EXPECT_GT(definitions.size(), 200u) << "few types in headers under " << root;
  for (const auto& [name, files] : definitions)
    EXPECT_EQ(files.size(), 1u) << name << " is defined in " << *files.begin() << " and " << *files.rbegin();
}

TEST(Definitions, FindsTwoOfOneName) {
  Definitions definitions;
  add_definitions("a.h", "namespace tern::detail {\nstruct Moved {\n  struct Inner {\n  };\n};\n}  // namespace",
                  definitions);
  add_definitions("b.h", "namespace tern {\nstruct Moved;\nnamespace detail {\nusing Moved = int;\n", definitions);
  add_definitions("a.h", "namespace tern::cuda {\ninline constexpr int kTile = 32;\n}  // namespace", definitions);
  add_definitions("b.h", "namespace tern::cuda {\ninline constexpr int64_t kTile = 512;\n}  // namespace", definitions);
  EXPECT_EQ(definitions, (Definitions{{"tern::detail::Moved", {"a.h", "b.h"}}, {"tern::cuda::kTile", {"a.h", "b.h"}}}));
}

}  // namespace
}  // namespace tern
