#pragma once

#include "tern/core/error.h"
#include "tern/dist/comm/tcp.h"
#include "tests/dist/comm/job.h"

namespace tern::test {

/// A job over loopback. Its ranks are threads of this process.
inline Transports make_tcp_job(int ranks, const Deadlines& deadlines) {
  Transports transports(ranks);
  detail::Listener listener(Address{});
  const Address master = listener.address();
  const auto errors = on_ranks(ranks, [&](int rank) {
    const TcpOptions options = {
        .rank = rank, .size = ranks, .master = master, .token = kJobToken, .deadlines = deadlines};
    transports[rank] = rank == 0 ? make_tcp(options, std::move(listener)) : make_tcp(options);
  });
  for (const auto& error : errors)
    if (!error.empty()) throw Error(error);
  return transports;
}

/// Every kind of transport.
inline std::vector<TransportKind> transport_kinds() {
  return {{"in_process", [](int ranks, const Deadlines& deadlines) { return make_in_process(ranks, deadlines); }},
          {"tcp", make_tcp_job}};
}

}  // namespace tern::test
