#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tern::trainer {

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

/// An option of `app`; `read` takes the words behind it. What an InputError of `read` says begins with the flag.
void add_option(CLI::App& app, const std::string& flag, const std::string& value, const std::string& help,
                const std::function<void(const std::vector<std::string>&)>& read);
/// The same, whose words read_value reads into `field`, which outlives it.
template <class T>
void add_value_option(CLI::App& app, const std::string& flag, const std::string& value, T& field,
                      const std::string& help) {
  add_option(app, flag, value, help, [&field](const std::vector<std::string>& words) { read_value(words, field); });
}

/// ", did you mean 'x'?" with the candidate nearest to `word` by edit distance; empty where none is near.
std::string suggestion(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace tern::trainer
