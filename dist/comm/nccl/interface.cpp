#include "tern/dist/comm/nccl/interface.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "tern/dist/comm/address.h"

namespace tern::nccl {
namespace {

/// The address from which this machine would send to `place`. Connecting a datagram socket sends nothing.
std::string local_host_towards(const detail::Resolved& place) {
  const int descriptor = ::socket(place.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return "";
  sockaddr_storage local = {};
  socklen_t length = sizeof local;
  const bool found = ::connect(descriptor, place.pointer(), place.length) == 0 &&
                     ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&local), &length) == 0;
  ::close(descriptor);
  return found ? detail::numeric(local, length).host : "";
}

std::string interface_of(const std::string& host) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    sockaddr_storage storage = {};
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&storage, entry->ifa_addr, length);
    if (detail::numeric(storage, length).host == host) return entry->ifa_name;
  }
  return "";
}

}  // namespace

std::string interface_towards(const Address& address) {
  for (const detail::Resolved& place : detail::resolve(address))
    if (const std::string host = local_host_towards(place); !host.empty()) return interface_of(host);
  return "";
}

}  // namespace tern::nccl
