#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

namespace tern::detail {

/// One of a host's addresses as the kernel takes it.
struct Resolved {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  int family() const { return storage.ss_family; }
  const sockaddr* pointer() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// All of a host's addresses, IPv4 and IPv6, in the system's order; InputError where it has none.
std::vector<Resolved> resolve(const Address& address);

Address numeric(const sockaddr_storage& storage, socklen_t length);

}  // namespace tern::detail
