#include "tern/dist/comm/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "tern/core/error.h"

namespace tern {

std::string to_string(const Address& address) {
  const bool numbers6 = address.host.find(':') != std::string::npos;
  return join({numbers6 ? "[" : "", address.host, numbers6 ? "]:" : ":", address.port});
}

Address parse_address(std::string_view text) {
  const size_t colon = text.rfind(':');
  check_input(colon != std::string_view::npos && colon > 0, "address '", text, "': expected HOST:PORT");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else
    check_input(host.find(':') == std::string_view::npos, "address '", text, "': expected [HOST]:PORT");
  Address address{std::string(host), 0};
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), address.port);
  check_input(error == std::errc() && end == digits.end(), "address '", text, "': the port is '", digits,
              "', expected 0 to 65535");
  return address;
}

bool names_this_machine(const Address& address) {
  in_addr number = {};
  return address.host == "localhost" || address.host == "::1" ||
         (::inet_pton(AF_INET, address.host.c_str(), &number) == 1 && ntohl(number.s_addr) >> 24 == 127);
}

}  // namespace tern

namespace tern::detail {

std::vector<Resolved> resolve(const Address& address) {
  std::string why;
  std::vector<Resolved> all = look_up(address, why);
  check_input(!all.empty(), address, ": ", why);
  return all;
}

std::vector<Resolved> look_up(const Address& address, std::string& why) {
  addrinfo wanted = {}, *list = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  const int error = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &list);
  std::vector<Resolved> all;
  if (error != 0) {
    why = join({"the host is not known: ", ::gai_strerror(error)});
    return all;
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  for (const addrinfo* entry = list; entry; entry = entry->ai_next) {
    Resolved place;
    std::memcpy(&place.storage, entry->ai_addr, entry->ai_addrlen);
    place.length = entry->ai_addrlen;
    all.push_back(place);
  }
  return all;
}

Address numeric(const sockaddr_storage& storage, socklen_t length) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&storage), length, host.data(), host.size(), port.data(),
                    port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {"unknown", 0};
  std::string_view number = host.data();
  constexpr std::string_view kMapped = "::ffff:";  // an IPv4 address, seen by a listener of IPv6
  if (number.starts_with(kMapped) && number.find('.') != std::string_view::npos) number.remove_prefix(kMapped.size());
  return {std::string(number), static_cast<uint16_t>(std::atoi(port.data()))};
}

bool is_loopback(const Address& address) {
  for (const Resolved& place : resolve(address)) {
    if (place.family() == AF_INET) {
      const auto* v4 = reinterpret_cast<const sockaddr_in*>(&place.storage);
      if (ntohl(v4->sin_addr.s_addr) >> 24 != 127) return false;
    } else {
      const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&place.storage);
      if (!IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)) return false;
    }
  }
  return true;
}

}  // namespace tern::detail
