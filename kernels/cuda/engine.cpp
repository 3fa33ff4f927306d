#include "tern/kernels/cuda/engine.h"

#include <charconv>

namespace tern::cuda {
namespace {

bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

bool take(std::string_view& text, int64_t& number) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string to_string(const Engine& engine) {
  std::string text = "engine " + std::to_string(engine.index);
  for (const auto& [knob, value] : engine.knobs) text += ' ' + std::to_string(knob) + '=' + std::to_string(value);
  return text;
}

std::optional<Engine> parse_engine(std::string_view text) {
  Engine engine;
  if (!take(text, "engine ") || !take(text, engine.index)) return {};
  while (!text.empty()) {
    auto& [knob, value] = engine.knobs.emplace_back();
    if (!take(text, " ") || !take(text, knob) || !take(text, "=") || !take(text, value)) return {};
  }
  return engine;
}

}  // namespace tern::cuda
