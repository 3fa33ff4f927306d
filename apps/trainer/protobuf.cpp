#include "tern/apps/trainer/protobuf.h"

#include <bit>

namespace tern {
namespace {

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

}  // namespace

void ProtobufMessage::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
  text_ += static_cast<char>(value);
}

ProtobufMessage& ProtobufMessage::integer(int field, int64_t value) {
  key(field, kVarint);
  varint(static_cast<uint64_t>(value));
  return *this;
}

ProtobufMessage& ProtobufMessage::number(int field, double value) {
  key(field, kFixed64);
  text_ += little_endian(std::bit_cast<uint64_t>(value));
  return *this;
}

ProtobufMessage& ProtobufMessage::number(int field, float value) {
  key(field, kFixed32);
  text_ += little_endian(std::bit_cast<uint32_t>(value));
  return *this;
}

ProtobufMessage& ProtobufMessage::bytes(int field, std::string_view value) {
  key(field, kBytes);
  varint(value.size());
  text_ += value;
  return *this;
}

}  // namespace tern
