#include "tern/core/error.h"

#include <fmt/format.h>

#include <algorithm>

#include "tern/core/edit_distance.h"

namespace tern {

MessagePart::MessagePart(double number) : text_(fmt::format("{}", number)) {}

std::string join(std::initializer_list<MessagePart> parts) {
  std::string message;
  for (const auto& part : parts) message += part.text();
  return message;
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  const auto without_dashes = [](std::string_view text) {
    return text.substr(std::min(text.find_first_not_of('-'), text.size()));
  };
  const std::string* nearest = nullptr;
  size_t least = 1 + without_dashes(word).size() / 4;
  for (const auto& candidate : candidates) {
    const size_t distance = edit_distance(without_dashes(word), without_dashes(candidate));
    if (distance > least || (nearest && distance == least)) continue;
    nearest = &candidate;
    least = distance;
  }
  return nearest ? join({", did you mean '", *nearest, "'?"}) : "";
}

void fail(std::initializer_list<MessagePart> parts) { throw Error(join(parts)); }
void fail_input(std::initializer_list<MessagePart> parts) { throw InputError(join(parts)); }

}  // namespace tern
