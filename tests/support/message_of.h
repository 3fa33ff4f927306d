#pragma once

#include <string>

namespace tern {

/// What the exception of type E that `action` throws has to say; "" where it throws nothing.
template <class E, class Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace tern
