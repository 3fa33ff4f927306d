#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tern {

/// A host, by name or number, and a TCP port.
struct Address {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  ///< 0: any that is free, to listen on

  friend bool operator==(const Address&, const Address&) = default;
};

/// "127.0.0.1:29400", "[::1]:29400"
std::string to_string(const Address& address);
/// Reads the same; InputError on anything else.
Address parse_address(std::string_view text);

}  // namespace tern
