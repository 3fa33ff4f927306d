#include "tern/dist/address.h"

#include <charconv>

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

}  // namespace tern
