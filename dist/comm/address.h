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
  uint16_t port = 0;  ///< 0 to listen on any free port

  friend bool operator==(const Address&, const Address&) = default;
};

/// For example "127.0.0.1:29400" or "[::1]:29400".
std::string to_string(const Address& address);
/// Reads what `to_string` writes. Throws InputError for any other text.
Address parse_address(std::string_view text);
/// Whether the host's name alone says that it is this machine: localhost, 127.x.y.z or ::1. Ranks that have the same
/// address give the same answer, whatever their machines resolve a name to.
bool names_this_machine(const Address& address);

}  // namespace tern

namespace tern::detail {

/// One address of a host, in the kernel's format.
struct Resolved {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  int family() const { return storage.ss_family; }
  const sockaddr* pointer() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// All addresses of a host, IPv4 and IPv6, in the system's order. Throws InputError if the host is not known.
std::vector<Resolved> resolve(const Address& address);
/// The same. If the host is not known, returns nothing and sets `why`.
std::vector<Resolved> look_up(const Address& address, std::string& why);

Address numeric(const sockaddr_storage& storage, socklen_t length);

/// Whether only this machine can reach the address. Throws InputError if the host is not known.
bool is_loopback(const Address& address);

}  // namespace tern::detail
