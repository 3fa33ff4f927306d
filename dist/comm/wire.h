#pragma once

#include <cstdint>
#include <string>

namespace tern {

/// What protects the bytes between two ranks of a TCP job, after both have proved that they hold the job's token.
enum class Wire : uint8_t {
  plain,  ///< a checksum (CRC-32C): finds damage, but anybody on the way can read and change
  mac,    ///< AES-128-GMAC over each frame: nobody can change, repeat or leave out a frame, but anybody can read
  tls     ///< TLS 1.3 from the first byte: nobody on the way can read or change
};

/// The name for people: "plain", "mac" or "tls".
std::string to_string(Wire wire);

}  // namespace tern
