#pragma once

#include <string>
#include <vector>

namespace tern {

/// A line of a configuration file that sets a flag.
struct ConfigLine {
  int number;        ///< from 1
  std::string flag;  ///< without dashes
  std::vector<std::string> values;
};

/// Reads the file of --config: a `flag=value` per line, a switch perhaps without its value, and lines of comment from
/// '#'. A value is one word, a list [a,b], or either in double quotes, within which a backslash stands before a quote
/// and before itself, and \n is a new line. An InputError names the file, and the line that is no such thing.
std::vector<ConfigLine> read_config(const std::string& path);

}  // namespace tern
