#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tern/core/error.h"
#include "tern/networks/lenet.h"
#include "tern/trainer/flags/command_line.h"
#include "tests/fuzz/input_file.h"

// Reads any words as the command line of train_lenet, or any text as its --config file. It gives settings, or an
// InputError. Settings are written as a file for --config. tern takes that file, and writes the same for it. The first
// byte chooses between words, one a line, and a file. Neither may name a --config file of its own.

namespace {

using namespace tern;

trainer::Invocation read(const std::vector<std::string>& words) {
  static const Application application = networks::lenet().application();
  std::vector<const char*> arguments = {"train_lenet"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return trainer::read_flags(static_cast<int>(arguments.size()), arguments.data(), application);
}

trainer::Invocation read_file(std::string_view text) { return read({"--config", input_file(text).string()}); }

std::vector<std::string> lines(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> found;
  for (std::string line; std::getline(stream, line);) found.push_back(line);
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (rest.find("config") != std::string_view::npos) return 0;
  std::string text;
  try {
    const trainer::Invocation invocation = data[0] % 2 == 0 ? read(lines(rest)) : read_file(rest);
    if (!invocation.run) return 0;
    text = trainer::config_text(invocation.settings);
  } catch (const InputError&) {
    return 0;
  }
  if (trainer::config_text(read_file(text).settings) != text) std::abort();
  return 0;
}
