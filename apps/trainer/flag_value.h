#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tern {

// Between a setting and its words on a command line. Reading throws an InputError that says what was found and what
// was expected, without the flag's name; writing gives words that read back to the same value.

void read_value(const std::vector<std::string>& words, std::string& value);
void read_value(const std::vector<std::string>& words, int64_t& value);
void read_value(const std::vector<std::string>& words, double& value);
void read_value(const std::vector<std::string>& words, std::optional<int64_t>& value);
void read_value(const std::vector<std::string>& words, std::vector<int64_t>& value);
void read_value(const std::vector<std::string>& words, std::vector<double>& value);
void read_value(const std::vector<std::string>& words, std::vector<std::string>& value);

/// As a value in a configuration file; empty where there is nothing to write.
std::string write_value(const std::string& value);
std::string write_value(int64_t value);
std::string write_value(double value);
std::string write_value(bool value);
std::string write_value(const std::optional<int64_t>& value);
std::string write_value(const std::vector<int64_t>& value);
std::string write_value(const std::vector<double>& value);
std::string write_value(const std::vector<std::string>& value);

}  // namespace tern
