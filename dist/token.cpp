#include "tern/dist/token.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>

#include "tern/core/error.h"

namespace tern {
namespace {

constexpr size_t kLeastCharacters = 16;

JobToken checked(JobToken token, const std::string& source) {
  check_input(token.size() >= kLeastCharacters, source, ": the job token has ", token.size(), " characters, expected ",
              kLeastCharacters, " or more");
  return token;
}

}  // namespace

JobToken read_token(const std::filesystem::path& path) {
  struct stat status = {};
  const int error = ::stat(path.c_str(), &status) == 0 ? 0 : errno;
  check_input(error == 0, path.string(), ": the job token cannot be read: ", std::generic_category().message(error));
  check_input((status.st_mode & 077) == 0, path.string(), ": the job token is open to others, expected mode 0600");
  std::ifstream stream(path);
  JobToken token;
  std::getline(stream, token);
  return checked(token, path.string());
}

JobToken token_from_environment() {
  if (const char* file = std::getenv("TERN_TOKEN_FILE")) return read_token(file);
  if (const char* token = std::getenv("TERN_TOKEN")) return checked(token, "TERN_TOKEN");
  return {};
}

JobToken make_token() {
  std::array<unsigned char, 32> bytes;
  const int error = ::getrandom(bytes.data(), bytes.size(), 0) == std::ssize(bytes) ? 0 : errno;
  check(error == 0, "job token: no random bytes: ", std::generic_category().message(error));
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

}  // namespace tern
