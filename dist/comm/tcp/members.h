#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tern/dist/comm/address.h"

namespace tern::detail {

/// A rank of the job: its machine, its process and the address at which it listens.
struct Member {
  std::string host = "-";
  uint32_t process = 0;
  Address address = {};

  /// "rank 2 (node7, process 4711)"
  std::string name_of(int rank) const;
};

/// What rank 0 tells all other ranks when they have come.
struct Members {
  std::string job = {};  ///< as `make_job_name` makes it
  std::vector<Member> ranks = {};
};

/// Writes the job's name, then one line per member. The machine's name comes last, because it may hold spaces.
std::string format(const Members& members);
/// Throws Error if `text` is not a list of `size` ranks.
Members parse_members(std::string_view text, int size);

}  // namespace tern::detail
