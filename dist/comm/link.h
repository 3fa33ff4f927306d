#pragma once

#include <memory>
#include <string_view>

#include "tern/dist/comm/transport.h"

namespace tern {

/// A network to be imitated on one machine: what each rank's cable carries, in each direction, and how long it takes.
struct Link {
  double bytes_per_second = 0;  ///< 0: without limit
  Clock::duration latency = {};
};

/// Reads "rate=1gbit,latency=0.2ms": kbit, mbit, gbit (powers of ten, per second); us, ms, s. InputError otherwise.
Link parse_link(std::string_view text);

/// Holds messages back on their way to the receiver as the link would: each takes its turn on the sender's cable and on
/// the receiver's, 48 bytes of frame included, and the latency in between. All ranks must run on one machine, whose
/// clock they share. Used as the transport that it owns.
std::unique_ptr<Transport> make_shaped(std::unique_ptr<Transport> transport, const Link& link);

}  // namespace tern
