#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tern::reproduce {

/// Writes a file atomically: if writing fails, the old file stays.
void write_text(const std::filesystem::path& path, const std::string& text);

/// Joins the words to one line, quoted for a POSIX shell.
std::string shell_command(const std::vector<std::string>& words);

/// A Markdown table with aligned columns; the first row is the header. All rows must have the same length.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace tern::reproduce
