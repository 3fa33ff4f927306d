#pragma once

#include <string>
#include <vector>

namespace tern {

/// A Markdown table whose columns line up as plain text, too; the first row is the head. Rows are of one length.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace tern
