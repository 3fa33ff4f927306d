#include <algorithm>
#include <string_view>

#include "tern/core/error.h"
#include "tern/optim/checkpoint.h"
#include "tests/fuzz/input_file.h"

// Reads any bytes as a checkpoint. It is read, or refused with an InputError. If the first byte is even, the rest is
// the file. Otherwise the rest is its notes, behind the checks of lengths and the checksum: the first line is the
// file's name, and each other line a note, with '=' between name and value; '\x01' stands for a line's end in a value.

namespace {

tern::Checkpoint read_notes(std::string_view text) {
  const auto next = [&text] {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    return line;
  };
  const std::string name(next());
  tern::SafetensorsFile file;
  file.checksum = "00000000";
  file.tensors.add("model/w", tern::Tensor::zeros({2}));
  while (!text.empty()) {
    const std::string_view line = next();
    const size_t equals = std::min(line.find('='), line.size());
    std::string value(line.substr(std::min(equals + 1, line.size())));
    std::replace(value.begin(), value.end(), '\x01', '\n');
    file.metadata[std::string(line.substr(0, equals))] = value;
  }
  tern::is_checkpoint(file);
  return tern::to_checkpoint(std::move(file), name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    const tern::Checkpoint checkpoint =
        data[0] % 2 == 0 ? tern::read_checkpoint(tern::input_file(rest)) : read_notes(rest);
    if (checkpoint.rank < 0 || checkpoint.rank >= checkpoint.ranks || checkpoint.step < 0) std::abort();
  } catch (const tern::InputError&) {
  }
  return 0;
}
