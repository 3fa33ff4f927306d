#pragma once

#include <span>

#include "tern/dist/exchange/exchange.h"
#include "tern/dist/exchange/plan.h"

namespace tern {

/// An exchange that flags can name. Adding one is a file with its entry, and a line in table.cpp.
struct ExchangeEntry {
  const char* name;
  const char* takes;  ///< in words, for people
  const char* bytes;  ///< that each rank sends, for n elements of b bits on N ranks
  bool (*valid)(const GradientCodec& codec);
  std::unique_ptr<Exchange> (*make)(GradientCodec& codec, Communicator& communicator);
  ExchangePlan (*plan)(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks);
};

std::span<const ExchangeEntry* const> exchange_table();

/// An entry's `make`.
template <class Kind>
std::unique_ptr<Exchange> make_exchange_of(GradientCodec& codec, Communicator& communicator) {
  return std::make_unique<Kind>(codec, communicator);
}

extern const ExchangeEntry ring_entry, allgather_entry, reduce_scatter_entry, server_entry, ternary_ring_entry;

}  // namespace tern
