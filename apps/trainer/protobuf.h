#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tern {

/// A protocol-buffer message under construction, in its wire format: appends one field after the other. A value.
class ProtobufMessage {
 public:
  ProtobufMessage& integer(int field, int64_t value);
  ProtobufMessage& number(int field, double value);
  ProtobufMessage& number(int field, float value);
  /// A string, bytes, or an embedded message.
  ProtobufMessage& bytes(int field, std::string_view value);

  const std::string& text() const { return text_; }

 private:
  void varint(uint64_t value);
  void key(int field, int wire_type) { varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type)); }

  std::string text_;
};

/// The bytes of `word`, least significant first.
template <class Word>
std::string little_endian(Word word) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(Word); ++i) bytes += static_cast<char>(word >> (8 * i) & 0xff);
  return bytes;
}

}  // namespace tern
