#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tern::reproduce {

/// The file appears whole, or the old one stays.
void write_text(const std::filesystem::path& path, const std::string& text);

/// The words as one line that a POSIX shell reads back.
std::string shell_command(const std::vector<std::string>& words);

/// A Markdown table whose columns line up as plain text, too; the first row is the head. Rows are of one length.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace tern::reproduce
