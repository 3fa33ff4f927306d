#include <sys/socket.h>

#include <array>
#include <cstdlib>

#include "tern/core/error.h"
#include "tern/dist/comm/tcp/handshake.h"

// Sends any bytes to the gate of a rank, as a stranger does who has no token. The gate lets nobody in. The first byte
// chooses the wire, and so whether OpenSSL or tern reads the rest.

namespace {

using namespace tern::detail;
using std::chrono::milliseconds;

const Door kDoor = {.rank = 0, .token = "a token of the right length"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Listener listener{tern::Address{}};
  if (size == 0) return 0;
  const auto wire = std::array{tern::Wire::plain, tern::Wire::mac, tern::Wire::tls}[data[0] % 3];
  Gate gate(listener, kDoor, wire, 4, milliseconds(20));
  const ConstBytes words(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  const auto soon = [] { return tern::Clock::now() + milliseconds(10); };
  std::string why;
  Socket stranger = connect(listener.address(), soon(), why);
  if (!stranger.open() || !stranger.write_all(words, soon())) return 0;
  stranger.reset_when_closed();                // millions of them would use up the ports
  ::shutdown(stranger.descriptor(), SHUT_WR);  // so that the gate waits for no more
  try {
    if (gate.admit([](const Hello&) { return ""; }, tern::Clock::now() + milliseconds(1))) std::abort();
  } catch (const tern::Error&) {
  }
  return 0;
}
