#include "tern/trainer/rank/flight.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "tern/dist/comm/in_process.h"
#include "tern/dist/comm/transport_communicator.h"
#include "tern/trainer/job/launch.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace tern::trainer {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

FlightRecord some_record() {
  FlightRecord record = {.rank = 1, .size = 3, .job = {.job = "20261128T120000Z-ab12", .failure = "rank 2 \"left\""}};
  record.job.clock = ClockOffset{std::chrono::nanoseconds(-5), std::chrono::nanoseconds(7)};
  record.taken = Clock::time_point(std::chrono::seconds(9));
  record.wait = WaitRecord{2, 17, Clock::time_point(std::chrono::seconds(4))};
  record.links = {{1, 2, 3, 4}, {}, {5, 6'000'000'000, 7, 8}};
  record.operations.push_back(
      {.message = {16, Operation::barrier, DType::u8, 0, Account::overhead}, .state = OperationRecord::State::done});
  record.operations.push_back({.message = {17, Operation::all_gather, DType::bf16, 1000},
                               .state = OperationRecord::State::failed,
                               .queued = Clock::time_point(std::chrono::seconds(3)),
                               .started = Clock::time_point(std::chrono::seconds(4)),
                               .ended = Clock::time_point(std::chrono::seconds(8)),
                               .sent = 10,
                               .received = 20,
                               .targets = 0b101,
                               .sources = 0b100});
  return record;
}

TEST(FlightFile, HoldsTheWholeRecord) {
  const TemporaryFolder folder;
  const fs::path path = write_flight_file(folder.path() / "new", some_record());
  EXPECT_EQ(path.filename(), "flight-20261128T120000Z-ab12-1.json");
  EXPECT_EQ(flight_files(folder.path() / "new"), std::vector<fs::path>{path});
  const FlightFile file = read_flight_file(path);
  EXPECT_EQ(file.process, ::getpid());
  const auto rest = [](const fs::path& written) {  // all that does not depend on the time of writing
    const std::string text = read_file(written);
    return text.substr(text.find("\"failure\""));
  };
  EXPECT_EQ(rest(write_flight_file(folder.path(), file.record)), rest(path));
  EXPECT_LT(std::chrono::abs(file.calendar -
                             (std::chrono::system_clock::now().time_since_epoch() - Clock::now().time_since_epoch())),
            std::chrono::minutes(1));
  EXPECT_EQ(last_operation(file.record), "all_gather 17 of 1000 bf16 failed after 4 s and waited for rank 2");
}

TEST(FlightFile, RefusesWhatIsNone) {
  const TemporaryFolder folder;
  const fs::path path = write_flight_file(folder.path(), some_record());
  const std::string whole = read_file(path);
  const auto with = [&](const std::string& found, const std::string& other) {
    std::string text = whole;
    text.replace(text.find(found), found.size(), other);
    return text;
  };
  const std::pair<std::string, std::string> table[] = {
      {"", "parse error"},
      {"[]", "cannot use at() with array"},
      {whole.substr(0, whole.size() / 2), "parse error"},
      {with("\"rank\":1", "\"rank\":3"), "found 3, expected a number from 0 to 2"},
      {with("\"ranks\":3", "\"ranks\":65"), "found 65, expected a number from 1 to 64"},
      {with("\"ranks\":3", "\"ranks\":1e300"), "found 1e+300, expected a number from 1 to 64"},
      {with("\"rank\":1", "\"rank\":4294967297"), "found 4294967297, expected a number from 0 to 2"},
      {with("\"now\":9000000000", "\"now\":9000000000000000000"), "expected a number from -576460752303423488 to"},
      {with("\"now\":9000000000", "\"now\":18446744073709551615"), "found 18446744073709551615, expected a number"},
      {with("\"count\":1000", "\"count\":-5"), "found -5, expected a number from 0 to"},
      {with("\"count\":1000", "\"count\":1.5"), "found 1.5, expected a number from 0 to"},
      {with("\"job\":\"", "\"job\":\"\\u001b"), "found a name of the job that is not 1 to 64 letters"},
      {with("\"for\":2", "\"for\":1"), "found a wait of rank 1 for itself"},
      {with("\"for\":2", "\"for\":3"), "found 3, expected a number from -1 to 2"},
      {with("all_gather", "all_love"), "found \"all_love\", expected a name"},
      {with("\"bf16\"", "\"f16\""), "found dtype \"f16\", expected f32"},
      {with("[0,2]", "[0,64]"), "found 64, expected a number from 0 to 63"},
  };
  for (const auto& [text, reason] : table) {
    write_file(path, text);
    const std::string said = message_of<InputError>([&] { read_flight_file(path); });
    EXPECT_TRUE(said.starts_with(path.string() + ": no flight record: ")) << said;
    EXPECT_NE(said.find(reason), std::string::npos) << said;
  }
  EXPECT_NE(message_of<InputError>([&] { read_flight_file(folder.path() / "none"); }).find("not readable"),
            std::string::npos);
}

// A rank that hangs does not come to its own error. The other ranks' error makes it write.
TEST(FlightWatch, WritesTheRecordsOfAllRanksWhenOneHangs) {
  const TemporaryFolder folder;
  auto transports = make_in_process(3, {.operation = milliseconds(300)});
  size_t before = 0;
  EXPECT_ANY_THROW(run_rank_threads(3, 1, [&](int rank) {
    TransportCommunicator communicator(std::move(transports[static_cast<size_t>(rank)]));
    FlightWatch watch(communicator, folder.path(), false);
    watch.begin();
    Tensor x = Tensor::full({4}, 1);
    communicator.all_reduce(x).wait();
    if (rank == 1) {
      for (const auto end = Clock::now() + std::chrono::seconds(20); before < 3 && Clock::now() < end;) {
        std::this_thread::sleep_for(milliseconds(10));
        before = flight_files(folder.path()).size();
      }
    }
    communicator.all_reduce(x).wait();
  }));
  EXPECT_EQ(before, 3u) << "while rank 1 hangs";
  for (const fs::path& path : flight_files(folder.path())) {
    const FlightRecord record = read_flight_file(path).record;
    EXPECT_NE(record.job.failure.find("rank 1 hangs"), std::string::npos) << record.job.failure;
    EXPECT_EQ(record.wait.has_value(), record.rank != 1);
    EXPECT_EQ(record.operations.size(), record.rank == 1 ? 1u : 2u);
  }
}

TEST(FlightWatch, WritesNothingIfTheJobEndsWell) {
  const TemporaryFolder folder;
  auto transports = make_in_process(2);
  run_rank_threads(2, 1, [&](int rank) {
    TransportCommunicator communicator(std::move(transports[static_cast<size_t>(rank)]));
    FlightWatch watch(communicator, folder.path(), false);
    watch.begin();
    communicator.barrier().wait();
  });
  EXPECT_TRUE(flight_files(folder.path()).empty());
}

}  // namespace
}  // namespace tern::trainer
