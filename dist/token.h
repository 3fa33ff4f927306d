#pragma once

#include <filesystem>
#include <string>

namespace tern {

/// What a job's ranks share and nobody else knows; empty where there is none.
using JobToken = std::string;

/// The first line of a file that its owner alone may read (mode 0600 or less), at least 16 characters; InputError with
/// the path and the reason otherwise.
JobToken read_token(const std::filesystem::path& path);

/// From the environment: the file that TERN_TOKEN_FILE names, else TERN_TOKEN itself, else none.
JobToken token_from_environment();

/// A new one, of 256 random bits.
JobToken make_token();

}  // namespace tern
