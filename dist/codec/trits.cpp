#include "tern/dist/codec/trits.h"

#include <algorithm>

#include "tern/core/error.h"

namespace tern {
namespace {

constexpr auto kTrits = static_cast<size_t>(kTritsPerByte);

}  // namespace

void append_trits(std::span<const int32_t> values, std::vector<std::byte>& bytes) {
  for (size_t first = 0; first < values.size(); first += kTrits) {
    int32_t byte = 0;
    for (size_t i = kTrits; i-- > 0;) byte = 3 * byte + 1 + (first + i < values.size() ? values[first + i] : 0);
    bytes.push_back(static_cast<std::byte>(byte));
  }
}

void read_trits(std::span<const std::byte> bytes, std::span<int32_t> values) {
  check(static_cast<int64_t>(bytes.size()) == trit_bytes(static_cast<int64_t>(values.size())), "codes have ",
        bytes.size(), " bytes, expected ", trit_bytes(static_cast<int64_t>(values.size())));
  for (size_t i = 0; i < bytes.size(); ++i) {
    auto byte = static_cast<int32_t>(bytes[i]);
    check(byte < 243, "byte ", i, " holds ", byte, ", beyond five trits");
    for (size_t e = kTrits * i; e < std::min(kTrits * (i + 1), values.size()); ++e, byte /= 3) values[e] = byte % 3 - 1;
  }
}

}  // namespace tern
