#pragma once

#include <span>

#include "tern/dist/codec/spec.h"
#include "tern/dist/exchange/exchange.h"
#include "tern/dist/exchange/plan.h"

namespace tern {

/// An exchange that a flag can name. To add one, write a file with its entry, and add the entry here and to the table
/// in exchange.cpp.
struct ExchangeEntry {
  const char* name;
  const char* takes;  ///< for people
  const char* bytes;  ///< bytes that each rank sends, for n elements of b bits on N ranks
  bool (*valid)(const GradientCodec& codec);
  /// `make` and `plan` ask `options` for the parameters of the exchange, if it has any. Their caller finishes them.
  std::unique_ptr<Exchange> (*make)(GradientCodec& codec, Communicator& communicator, SpecParameters& options);
  ExchangePlan (*plan)(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks,
                       SpecParameters& options);
  const char* parameters = nullptr;  ///< for people, with defaults; null if there are none
};

std::span<const ExchangeEntry* const> exchange_table();

/// The `make` of an ExchangeEntry for the class `Kind`.
template <class Kind>
std::unique_ptr<Exchange> make_exchange_of(GradientCodec& codec, Communicator& communicator, SpecParameters&) {
  return std::make_unique<Kind>(codec, communicator);
}

extern const ExchangeEntry ring_entry, allgather_entry, allgather_sent_entry, reduce_scatter_entry, server_entry,
    ternary_ring_entry, power_sgd_entry;

}  // namespace tern
