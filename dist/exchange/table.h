#pragma once

#include <span>

#include "tern/dist/exchange.h"

namespace tern {

/// An exchange that flags can name. Adding one is a file with its entry, and a line in table.cpp.
struct ExchangeEntry {
  const char* name;
  const char* takes;  ///< in words, for people
  const char* bytes;  ///< that each rank sends, for n elements of b bits on N ranks
  bool (*valid)(const GradientCodec& codec);
  std::unique_ptr<Exchange> (*make)(GradientCodec& codec, Communicator& communicator);
};

std::span<const ExchangeEntry* const> exchange_table();

extern const ExchangeEntry ring_entry, allgather_entry;

}  // namespace tern
