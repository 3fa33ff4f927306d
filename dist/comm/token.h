#pragma once

#include <filesystem>
#include <string>

namespace tern {

/// The secret that a job's ranks share; empty if there is none.
using JobToken = std::string;

/// Reads a token of at least 16 characters from the first line of a file. It must be a regular file of this user or
/// root that others cannot open (mode 0600 or less). Throws InputError with the path and the reason otherwise. Never
/// blocks, whatever the path names.
JobToken read_token(const std::filesystem::path& path);

/// The token in the file that TERN_TOKEN_FILE names, else TERN_TOKEN itself, else none. An empty TERN_TOKEN_FILE names
/// none.
JobToken token_from_environment();

/// The token of all jobs that this user starts on this machine: `token_from_environment`, else the one in
/// $XDG_RUNTIME_DIR/tern-token. If there is no such folder of this user, it is in ~/.cache/tern/token. The first
/// process that asks makes the file. Throws InputError if the file fails the checks of `read_token`, or if the folder
/// is not this user's own.
JobToken token_of_machine();

/// A new token of 256 random bits.
JobToken make_token();

}  // namespace tern
