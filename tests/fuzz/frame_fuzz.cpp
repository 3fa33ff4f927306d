#include <algorithm>
#include <cstdlib>

#include "tern/core/error.h"
#include "tern/dist/comm/tcp/frame.h"

// Reads any bytes as a frame. `decode` throws an Error, or the header is one that `encode` writes. In the second case,
// no payload with a wrong tag passes, neither a checksum nor a code of AES-GMAC.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tern::detail;
  if (size < Frame::kBytes) return 0;
  Frame::Header header;
  const auto* const bytes = reinterpret_cast<const std::byte*>(data);
  std::copy_n(bytes, Frame::kBytes, header.begin());
  const ConstBytes payload(bytes + Frame::kBytes, size - Frame::kBytes);
  try {
    const Frame frame = decode(header);
    for (const bool mac : {false, true}) {
      const auto seal = [mac] { return mac ? FrameSeal::mac(Digest{}) : FrameSeal::checksum(); };
      FrameSeal sent = seal(), received = seal();
      received.begin(header);
      received.add(payload);
      const bool whole = frame.length == payload.size() && received.fits(header);
      if (whole && encode(frame, payload, sent) != header) std::abort();
    }
  } catch (const tern::Error&) {
  }
  return 0;
}
