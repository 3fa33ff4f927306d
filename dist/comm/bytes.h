#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "tern/core/error.h"

namespace tern {

/// Appends values as they are in memory (little-endian).
template <class T>
void append_values(std::vector<std::byte>& bytes, std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto raw = std::as_bytes(values);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}
template <class T>
void append_value(std::vector<std::byte>& bytes, const T& value) {
  append_values(bytes, std::span<const T>(&value, 1));
}

/// Reads a message from its front. Throws if a read goes past the end.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> take(size_t count) {
    check(count <= bytes_.size(), "message ends ", count - bytes_.size(), " bytes early");
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  template <class T>
  T value() {
    T result;
    std::memcpy(&result, take(sizeof result).data(), sizeof result);
    return result;
  }
  template <class T>
  void values(std::span<T> into) {
    const auto raw = take(into.size_bytes());
    if (!raw.empty()) std::memcpy(into.data(), raw.data(), raw.size());
  }
  std::span<const std::byte> rest() { return take(bytes_.size()); }
  bool empty() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace tern
