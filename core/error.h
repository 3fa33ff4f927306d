#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tern {

/// Base of every exception that tern throws. Thrown directly if the caller breaks the contract of the API, or for a
/// fault inside tern.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown if input from a user is wrong: a flag, a file or the environment. Applications then end with exit code 2.
class InputError : public Error {
 public:
  using Error::Error;
};

/// Thrown if the system gives no memory or no thread. Applications then end with exit code 2.
class ResourceError : public Error {
 public:
  using Error::Error;
};

/// A part of a message: text, a number, or any type with a `to_string` function in its namespace.
class MessagePart {
 public:
  MessagePart(const char* text) : text_(text) {}
  MessagePart(std::string_view text) : text_(text) {}
  MessagePart(std::string text) : text_(std::move(text)) {}
  MessagePart(char character) : text_(1, character) {}
  MessagePart(double number);
  template <std::integral T>
  MessagePart(T number) : text_(std::to_string(number)) {}
  template <class T>
  requires requires(const T& value) {
    { to_string(value) } -> std::convertible_to<std::string>;
  }
  MessagePart(const T& value) : text_(to_string(value)) {}

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string join(std::initializer_list<MessagePart> parts);

/// ", did you mean 'x'?" with the candidate nearest to `word` by edit distance; empty if none is near.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

[[noreturn]] void fail(std::initializer_list<MessagePart> parts);
[[noreturn]] void fail_input(std::initializer_list<MessagePart> parts);

/// Throws `Error` unless `condition` holds. Name the operation, what was found and what was expected:
/// `check(c == k, "conv2d: input has ", c, " channels, weight expects ", k);`
template <class... Parts>
void check(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail({MessagePart(parts)...});
}

/// As `check`, for input from a user: throws `InputError`. Also name the file, the offset or the flag.
template <class... Parts>
void check_input(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail_input({MessagePart(parts)...});
}

}  // namespace tern
