#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tern/core/error.h"
#include "tern/dist/comm/tcp/clock_watch.h"
#include "tern/dist/comm/tcp/link_watch.h"
#include "tern/dist/comm/tcp/members.h"
#include "tern/dist/comm/tcp/monitor.h"

// Reads any bytes as what the ranks of a job tell each other beside their data: control frames, heartbeats with their
// times and reports, and the list of members. Each is read or refused with an Error. What is read is written and read
// again with the same result. The first byte chooses what the rest is.

namespace {

using namespace tern::detail;

constexpr int kRanks = 3;

/// All frames out of an inbox. If `sealed`, a good tag is put into the first header, so that its payload counts.
void read_frames(std::string_view text, bool sealed) {
  std::vector<std::byte> inbox;
  for (const char c : text) inbox.push_back(static_cast<std::byte>(c));
  Frame frame;
  std::string payload;
  if (sealed && inbox.size() >= Frame::kBytes) {
    Frame::Header header;
    std::copy_n(inbox.begin(), Frame::kBytes, header.begin());
    frame = decode(header);
    frame.length = inbox.size() - Frame::kBytes;
    FrameSeal seal = FrameSeal::checksum();
    header = encode(frame, ConstBytes(inbox).subspan(Frame::kBytes), seal);
    std::copy(header.begin(), header.end(), inbox.begin());
  }
  FrameSeal seal = FrameSeal::checksum();
  while (take_control(inbox, seal, frame, payload)) continue;
}

void read_heartbeat(std::string_view text) {
  ClockWatch clock;
  const auto now = tern::Clock::now();
  for (int i = 0; i < 2; ++i) {
    const LinkReport report = parse_link_report(clock.hear(text, now), kRanks);
    const std::string written = format(report);
    if (format(parse_link_report(written, kRanks)) != written) std::abort();
    if (const auto offset = clock.offset(now); offset && offset->error < tern::Clock::duration::zero()) std::abort();
  }
}

void read_members(std::string_view text) {
  const Members members = parse_members(text, kRanks);
  if (format(parse_members(format(members), kRanks)) != format(members)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 4) {
      case 0: read_frames(text, false); break;
      case 1: read_frames(text, true); break;
      case 2: read_heartbeat(text); break;
      default: read_members(text);
    }
  } catch (const tern::Error&) {
  }
  return 0;
}
