#pragma once

#include <filesystem>
#include <string>

namespace tern {

/// What a job's ranks share and nobody else knows; empty if there is none.
using JobToken = std::string;

/// The first line of a regular file of this user's or root's that others may not open (mode 0600 or less), at least 16
/// characters; an InputError with the path and the reason otherwise. Never waits, whatever the path names.
JobToken read_token(const std::filesystem::path& path);

/// From the environment: the file that TERN_TOKEN_FILE names, else TERN_TOKEN itself, else none.
JobToken token_from_environment();

/// The token of all jobs that this user starts on this machine: `token_from_environment`, else the one in
/// $XDG_RUNTIME_DIR/tern-token, or in ~/.cache/tern/token if there is no such folder of this user's. Whoever comes
/// first makes the file. An InputError if the file, or its folder, is not this user's own.
JobToken token_of_machine();

/// A new one, of 256 random bits.
JobToken make_token();

}  // namespace tern
