#pragma once

#include <sys/socket.h>

#include <vector>

#include "tern/dist/address.h"

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
