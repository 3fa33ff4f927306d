#pragma once

#include "tern/core/error.h"
#include "tern/dist/comm/nccl.h"
#include "tests/dist/comm/job.h"
#include "tests/support/cuda.h"

namespace tern::test {

/// Returns why NCCL cannot connect so many ranks here, each with its own device; an empty string if it can.
inline std::string why_no_nccl(int ranks) {
  try {
    nccl_version();
  } catch (const InputError& error) {
    return error.what();
  }
  return why_no_cuda(ranks);
}

/// Does what with_communicators does, with NCCL. Rank r has cuda:r.
template <class Body>
std::vector<std::string> with_nccl(Transports transports, const Deadlines& deadlines, const Body& body) {
  return on_ranks(static_cast<int>(transports.size()), [&](int rank) {
    const NcclOptions options = {.device = {DeviceType::cuda, rank}, .deadlines = deadlines};
    const auto communicator = make_nccl(std::move(transports[rank]), options);
    body(*communicator);
  });
}

}  // namespace tern::test
