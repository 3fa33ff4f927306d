#pragma once

#include <string>

namespace tern {

/// Returns the message of the exception of type E that `action` throws, or "" if it throws nothing.
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
