#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

#include "tern/dist/comm/nccl/communicator.h"
#include "tern/dist/comm/tcp.h"
#include "tern/dist/methods/averaging.h"
#include "tests/support/cuda.h"
#include "tests/support/process.h"

namespace tern::test {
namespace {

constexpr Device kCuda{DeviceType::cuda, 0};
constexpr const char* kPlace = "TERN_TEST_NCCL_PLACE";  // variable of a rank's process: "RANK ADDRESS"
const Deadlines kDeadlines = {.operation = std::chrono::seconds(20), .rendezvous = std::chrono::seconds(20)};

/// Does what make_nccl does. make_nccl refuses ranks that share a GPU.
nccl::NcclCommunicator join_pair(int rank, const Address& master) {
  const TcpOptions options = {
      .rank = rank, .size = 2, .master = master, .token = "a token that both ranks hold", .deadlines = kDeadlines};
  auto host = std::make_unique<TransportCommunicator>(make_tcp(options));
  ncclUniqueId id = {};
  if (rank == 0) nccl::check_nccl(nccl::library().get_unique_id(&id), "id");
  Tensor bytes = Tensor::empty({sizeof id}, {.dtype = DType::u8});
  std::memcpy(bytes.raw_data(), &id, sizeof id);
  host->broadcast(bytes, 0, Account::overhead).wait();
  std::memcpy(&id, bytes.raw_data(), sizeof id);
  return {std::move(host), id, {.device = kCuda, .deadlines = kDeadlines}};
}

/// Prints the means of a gradient that differs by rank, for a codec of floats and one of codes.
void run_rank(const std::string& place) {
  int rank = 0;
  std::string master;
  std::istringstream(place) >> rank >> master;
  auto communicator = join_pair(rank, parse_address(master));
  for (const char* codec : {"none", "ternary"}) {
    Averaging averaging(communicator, {{"w", 100}}, {.codec = codec});
    averaging.begin(7);
    averaging.give(0, Tensor::full({100}, rank + 1).to(kCuda));
    std::cout << "mean by " << codec << ": " << testing::PrintToString(averaging.finish()[0].to_vector<float>())
              << "\n";
  }
}

std::string means_in(const std::string& output) {
  std::string means, line;
  for (std::istringstream lines(output); std::getline(lines, line);)
    if (line.starts_with("mean by ")) means += line + "\n";
  return means;
}

// If NCCL_HOSTID differs, NCCL takes two processes for two hosts; nobody documents this. Their kernels wait for each
// other and take turns on the GPU. So the test is slow and may miss the deadline, and it runs only on request.
TEST(NcclPair, SharesOneGpu) {
  if (const char* place = std::getenv(kPlace)) return run_rank(place);
  if (std::getenv("TERN_TEST_NCCL_PAIR") == nullptr) GTEST_SKIP() << "runs where TERN_TEST_NCCL_PAIR=1 asks for it";
  if (const std::string why = why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  const std::string master = to_string(detail::Listener(Address{}).address());
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  ::setenv("NCCL_MAX_CTAS", "1", 1);
  std::vector<std::unique_ptr<Process>> ranks;
  for (const std::string rank : {"0", "1"}) {
    ::setenv("NCCL_HOSTID", ("rank" + rank).c_str(), 1);
    ::setenv(kPlace, (rank + " " + master).c_str(), 1);
    const std::vector<std::string> command = {"/proc/self/exe", "--gtest_filter=NcclPair.SharesOneGpu"};
    ranks.push_back(std::make_unique<Process>(command));
  }
  ::unsetenv(kPlace);
  const Outcome first = ranks[0]->wait(), second = ranks[1]->wait();
  EXPECT_EQ(first.code, 0) << first.out << first.err;
  EXPECT_EQ(second.code, 0) << second.out << second.err;
  EXPECT_NE(means_in(first.out).find("mean by ternary: "), std::string::npos);
  EXPECT_EQ(means_in(first.out), means_in(second.out));
}

}  // namespace
}  // namespace tern::test
