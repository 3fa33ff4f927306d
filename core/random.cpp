#include "tern/core/random.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <cmath>
#include <numbers>
#include <system_error>
#include <utility>
#include <vector>

#include "tern/core/error.h"

namespace tern {

float RandomStream::normal(uint64_t element) const {
  const auto words = block(static_cast<uint32_t>(element >> 1));
  const auto pair = (element & 1) * 2;
  const double u = (static_cast<double>(words[pair]) + 1.0) * 0x1p-32;  // in (0, 1]
  const double angle = static_cast<double>(words[pair + 1]) * (0x1p-32 * 2.0 * std::numbers::pi);
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(angle));
}

void shuffle(std::span<int64_t> order, const RandomStream& random) {
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.below(i - 1, static_cast<uint32_t>(i))]);
}

std::string random_id(size_t bytes) {
  std::vector<unsigned char> random(bytes);
  const int error = ::getrandom(random.data(), bytes, 0) == std::ssize(random) ? 0 : errno;
  check(error == 0, "random id: the system gave no random bytes: ", std::generic_category().message(error));
  return fmt::format("{:02x}", fmt::join(random, ""));
}

}  // namespace tern
