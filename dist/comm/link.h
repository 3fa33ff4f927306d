#pragma once

#include <memory>
#include <string_view>

#include "tern/dist/comm/transport.h"

namespace tern {

/// A network to imitate on one machine: the rate of each rank's cable in each direction, and the latency.
struct Link {
  double bytes_per_second = 0;  ///< 0: no limit
  Clock::duration latency = {};
};

/// Reads for example "rate=1gbit,latency=0.2ms", or a rate alone: "1gbit". Rates: kbit, mbit, gbit (powers of ten, per
/// second). Latencies: us, ms, s. Throws InputError for any other text.
Link parse_link(std::string_view text);

/// Wraps `transport` and delays messages as the link would. Each message takes its time on the sender's cable, then the
/// latency. The receiver's cable carries it meanwhile, unless it is busy with an earlier message. Its size includes a
/// frame of 64 bytes. All ranks must run on one machine, because they share its clock. The result owns `transport` and
/// follows the same rules of use.
std::unique_ptr<Transport> make_shaped(std::unique_ptr<Transport> transport, const Link& link);

}  // namespace tern
