#pragma once

#include <exception>
#include <thread>
#include <vector>

#include "tern/core/parallel.h"
#include "tern/dist/in_process.h"
#include "tern/dist/transport_communicator.h"

namespace tern {

/// Calls `body(communicator)` on a thread for each of `ranks`, which compute with `threads` each and share this
/// machine; rethrows the first rank's error.
template <class Body>
void side_by_side(int ranks, int threads, const Body& body) {
  auto transports = make_in_process(ranks);
  std::vector<std::exception_ptr> errors(transports.size());
  std::vector<std::thread> running;
  for (size_t rank = 0; rank < transports.size(); ++rank)
    running.emplace_back([&, rank] {
      try {
        set_thread_count(threads);
        TransportCommunicator communicator(std::move(transports[rank]));
        body(communicator);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  for (std::thread& thread : running) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace tern
