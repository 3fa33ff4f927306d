#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tern/dist/comm/in_process.h"
#include "tern/dist/comm/token.h"
#include "tern/dist/comm/transport_communicator.h"

namespace tern::test {

/// The token that lets the ranks of a test's job join it.
inline const JobToken kJobToken = "a token of the right length";

using Transports = std::vector<std::unique_ptr<Transport>>;

/// A way to connect ranks.
struct TransportKind {
  std::string name;
  std::function<Transports(int ranks, const Deadlines&)> make;
};
inline std::string to_string(const TransportKind& kind) { return kind.name; }
inline std::ostream& operator<<(std::ostream& stream, const TransportKind& kind) { return stream << kind.name; }

/// Returns true if `text` contains `what`.
inline bool names(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

/// Calls `body(rank)` on one thread per rank, and waits for all. Returns the message of what each rank threw, or "" if
/// it threw nothing.
template <class Body>
std::vector<std::string> on_ranks(int ranks, const Body& body) {
  std::vector<std::string> errors(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
    });
  for (auto& thread : threads) thread.join();
  return errors;
}

/// Does the same with a communicator for each rank. The communicator ends with its rank's body.
template <class Body>
std::vector<std::string> with_communicators(Transports transports, const Body& body) {
  return on_ranks(static_cast<int>(transports.size()), [&](int rank) {
    TransportCommunicator communicator(std::move(transports[rank]));
    body(communicator);
  });
}

/// Runs `body` with the communicator of each in-process rank. No rank may throw.
template <class Body>
void expect_on_ranks(int ranks, const Body& body) {
  EXPECT_EQ(with_communicators(make_in_process(ranks), body), std::vector<std::string>(static_cast<size_t>(ranks)));
}

}  // namespace tern::test
