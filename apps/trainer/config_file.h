#pragma once

#include <CLI/CLI.hpp>
#include <istream>
#include <string>
#include <vector>

namespace tern {

/// The file of --config: a `flag=value` per line, a switch perhaps without its value, and lines of comment from '#'.
/// A value is one word, a list [a,b], or either in double quotes, within which a backslash stands before a quote and
/// before itself, and \n is a new line.
class ConfigFile final : public CLI::Config {
 public:
  /// An InputError names the line that is no such thing.
  std::vector<CLI::ConfigItem> from_config(std::istream& file) const override;
  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return {}; }
};

}  // namespace tern
