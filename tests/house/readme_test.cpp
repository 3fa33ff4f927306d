#include <gtest/gtest.h>

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

/// What the README shows is what tests/consume compiles and runs.
TEST(Readme, ShowsCodeThatIsCompiled) {
  const std::filesystem::path root = TERN_SOURCE_DIR;
  std::string compiled;
  for (const auto& entry : std::filesystem::directory_iterator(root / "tests/consume"))
    if (entry.path().extension() == ".cpp") compiled += read(entry.path());
  const auto blocks = code_blocks(read(root / "README.md"));
  EXPECT_GE(blocks.size(), 4u);
  for (const auto& block : blocks)
    EXPECT_NE(compiled.find(block), std::string::npos) << "in no file of tests/consume:\n" << block;
}

}  // namespace
}  // namespace tern
