#pragma once

#include "tern/core/error.h"
#include "tern/dist/comm/tcp.h"
#include "tests/dist/comm/job.h"

namespace tern::test {

/// A job over loopback. Its ranks are threads of this process.
inline Transports make_tcp_job_on(Wire wire, int ranks, const Deadlines& deadlines) {
  Transports transports(ranks);
  detail::Listener listener(Address{});
  const Address master = listener.address();
  const auto errors = on_ranks(ranks, [&](int rank) {
    const TcpOptions options = {
        .rank = rank, .size = ranks, .master = master, .token = kJobToken, .wire = wire, .deadlines = deadlines};
    transports[rank] = rank == 0 ? make_tcp(options, std::move(listener)) : make_tcp(options);
  });
  for (const auto& error : errors)
    if (!error.empty()) throw Error(error);
  return transports;
}

inline Transports make_tcp_job(int ranks, const Deadlines& deadlines) {
  return make_tcp_job_on(Wire::mac, ranks, deadlines);
}

/// Every kind of transport. A plain wire differs from mac only in the tag of a frame.
inline std::vector<TransportKind> transport_kinds() {
  std::vector<TransportKind> kinds = {
      {"in_process", [](int ranks, const Deadlines& deadlines) { return make_in_process(ranks, deadlines); }}};
  for (const Wire wire : {Wire::mac, Wire::tls})
    kinds.push_back({"tcp_" + to_string(wire), [wire](int ranks, const Deadlines& deadlines) {
                       return make_tcp_job_on(wire, ranks, deadlines);
                     }});
  return kinds;
}

}  // namespace tern::test
