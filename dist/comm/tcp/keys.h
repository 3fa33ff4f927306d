#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tern/dist/comm/token.h"
#include "tern/dist/comm/transport.h"

namespace tern::detail {

using Digest = std::array<std::byte, 32>;

/// HMAC-SHA256 (RFC 2104) of `text`, with the token as key.
Digest hmac(const JobToken& token, ConstBytes text);
bool is_same(ConstBytes a, ConstBytes b);  ///< in a time that depends only on the lengths
Digest random_bytes();                     ///< that nobody can guess

/// HKDF-SHA256 (RFC 5869) of the token: a key for one purpose, which says nothing about the token or other keys.
Digest derive_key(const JobToken& token, ConstBytes salt, std::string_view purpose);

}  // namespace tern::detail
