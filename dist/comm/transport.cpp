#include "tern/dist/comm/transport.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "tern/core/error.h"
#include "tern/core/random.h"

namespace tern {

std::string to_string(Operation operation) {
  static constexpr std::array kNames = {"nothing",        "broadcast",  "all_reduce_sum", "all_reduce_max",
                                        "reduce_scatter", "all_gather", "all_to_all",     "scatter",
                                        "gather",         "barrier",    "shift",          "fan_out"};
  static_assert(kNames.size() == static_cast<size_t>(Operation::last) + 1);
  return kNames.at(static_cast<size_t>(operation));
}

bool parts_may_differ(Operation operation) {
  return operation == Operation::all_to_all || operation == Operation::shift;
}

std::string to_string(const Message& message) {
  if (message.operation == Operation::none) return "no operation yet";
  const std::string count = parts_may_differ(message.operation) ? "" : std::to_string(message.count) + " ";
  return join({message.operation, " ", message.sequence, " of ", count, message.dtype});
}

bool agree(const Message& a, const Message& b) {
  return a.sequence == b.sequence && a.operation == b.operation && a.dtype == b.dtype && a.count == b.count;
}

}  // namespace tern

namespace tern::detail {

std::string make_job_name() {
  return fmt::format("{:%Y%m%dT%H%M%SZ}-{}", fmt::gmtime(std::time(nullptr)), random_id(2));
}

void check_job_name(const std::string& name) {
  const auto fits = [](char c) {
    return c == '-' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  check(!name.empty() && name.size() <= 64 && std::ranges::all_of(name, fits),
        "found a name of the job that is not 1 to 64 letters, digits and -");
}

}  // namespace tern::detail
