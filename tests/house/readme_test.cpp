#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tern {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The blocks between a line "```cpp" and the next line "```".
std::vector<std::string> code_blocks(const std::string& markdown) {
  static const std::string kOpen = "\n```cpp\n", kClose = "\n```";
  std::vector<std::string> blocks;
  for (size_t open = markdown.find(kOpen); open != std::string::npos; open = markdown.find(kOpen, open)) {
    open += kOpen.size();
    const size_t close = markdown.find(kClose, open);
    blocks.push_back(markdown.substr(open, close - open + 1));
  }
  return blocks;
}

TEST(Readme, FindsBlocksOfCode) {
  EXPECT_EQ(code_blocks("a\n```cpp\nint x;\n```\n```sh\nls\n```\n\n```cpp\nint y;\n```\n"),
            (std::vector<std::string>{"int x;\n", "int y;\n"}));
}

/// The text of all C++ sources in a folder and its subfolders.
std::string sources_in(const std::filesystem::path& folder) {
  std::string text;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".cpp" || entry.path().extension() == ".h") text += read(entry.path());
  return text;
}

/// Expects every block of `page` in `compiled`, the text of sources that the build compiles. Returns the number of
/// blocks on the page.
size_t check_blocks(const std::filesystem::path& page, const std::string& compiled) {
  const auto blocks = code_blocks(read(page));
  for (const auto& block : blocks)
    EXPECT_NE(compiled.find(block), std::string::npos) << page << " shows what no file has:\n" << block;
  return blocks.size();
}

TEST(Readme, ShowsCodeThatIsCompiled) {
  const std::filesystem::path root = TERN_SOURCE_DIR;
  EXPECT_GE(check_blocks(root / "README.md", sources_in(root / "examples")), 1u);
  std::string compiled;
  for (const char* folder : {"tests", "examples", "dist", "apps"}) compiled += sources_in(root / folder);
  size_t blocks = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") blocks += check_blocks(entry.path(), compiled);
  EXPECT_GE(blocks, 10u);
}

TEST(Readme, FitsItsLength) {
  const std::string text = read(std::filesystem::path(TERN_SOURCE_DIR) / "README.md");
  EXPECT_LE(std::ranges::count(text, '\n'), 150);
}

}  // namespace
}  // namespace tern
