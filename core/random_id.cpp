#include "tern/core/random_id.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "tern/core/error.h"

namespace tern {

std::string random_id(size_t bytes) {
  std::vector<unsigned char> random(bytes);
  const int error = ::getrandom(random.data(), bytes, 0) == std::ssize(random) ? 0 : errno;
  check(error == 0, "random id: the system gave no random bytes: ", std::generic_category().message(error));
  return fmt::format("{:02x}", fmt::join(random, ""));
}

}  // namespace tern
