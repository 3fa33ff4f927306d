#include "tern/dist/comm/nccl/library.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tern/core/error.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

// These calls of the library need no driver.
TEST(NcclLibrary, GivesIds) {
  const nccl::Library& library = nccl::library();
  ncclUniqueId ids[2] = {};
  for (ncclUniqueId& id : ids) nccl::check_nccl(library.get_unique_id(&id), "id");
  EXPECT_FALSE(std::ranges::equal(ids[0].internal, ids[1].internal));
}

TEST(NcclLibrary, ItsErrorsSayWhatWasDone) {
  nccl::check_nccl(ncclInProgress, "all_reduce");
  const std::string message = message_of<Error>([] { nccl::check_nccl(ncclInvalidUsage, "all_reduce 7"); });
  EXPECT_TRUE(message.starts_with("all_reduce 7: NCCL: invalid usage")) << message;
}

}  // namespace
}  // namespace tern::test
