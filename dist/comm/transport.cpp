#include "tern/dist/comm/transport.h"

#include <array>

#include "tern/core/error.h"

namespace tern {

std::string to_string(Operation operation) {
  static constexpr std::array kNames = {"nothing",        "broadcast",  "all_reduce_sum", "all_reduce_max",
                                        "reduce_scatter", "all_gather", "all_to_all",     "scatter",
                                        "gather",         "barrier",    "shift",          "fan_out"};
  static_assert(kNames.size() == static_cast<size_t>(Operation::last) + 1);
  return kNames.at(static_cast<size_t>(operation));
}

std::string to_string(const Message& message) {
  if (message.operation == Operation::none) return "no operation yet";
  return join({message.operation, " ", message.sequence, " of ", message.count, " ", message.dtype});
}

bool agree(const Message& a, const Message& b) {
  return a.sequence == b.sequence && a.operation == b.operation && a.dtype == b.dtype && a.count == b.count;
}

}  // namespace tern
