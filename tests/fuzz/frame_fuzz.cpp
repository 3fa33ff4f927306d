#include <algorithm>
#include <cstdlib>

#include "tern/core/error.h"
#include "tern/dist/comm/tcp/frame.h"

// Reads any bytes as a frame. `decode` throws an Error, or the header is one that `encode` writes. In the second case,
// no payload with a wrong checksum passes.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tern::detail;
  if (size < Frame::kBytes) return 0;
  Frame::Header header;
  const auto* const bytes = reinterpret_cast<const std::byte*>(data);
  std::copy_n(bytes, Frame::kBytes, header.begin());
  const ConstBytes payload(bytes + Frame::kBytes, size - Frame::kBytes);
  try {
    const Frame frame = decode(header);
    FrameCheck check(header);
    check.add(payload);
    const bool whole = frame.length == payload.size() && check.good();
    if (whole && encode(frame, payload) != header) std::abort();
  } catch (const tern::Error&) {
  }
  return 0;
}
