#include "tern/core/error.h"

#include <fmt/format.h>

namespace tern {

MessagePart::MessagePart(double number) : text_(fmt::format("{}", number)) {}

std::string join(std::initializer_list<MessagePart> parts) {
  std::string message;
  for (const auto& part : parts) message += part.text();
  return message;
}

void fail(std::initializer_list<MessagePart> parts) { throw Error(join(parts)); }
void fail_input(std::initializer_list<MessagePart> parts) { throw InputError(join(parts)); }

}  // namespace tern
