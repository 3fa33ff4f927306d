#include "tern/trainer/rank/flight.h"

#include <fmt/chrono.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <iterator>
#include <limits>

#include "tern/core/atomic_file.h"
#include "tern/core/error.h"
#include "tern/core/escaped.h"
#include "tern/core/program.h"
#include "tern/dist/comm/failure.h"
#include "tern/dist/comm/in_process.h"
#include "tern/trainer/rank/interrupt.h"

namespace tern::trainer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using State = OperationRecord::State;

/// How often a rank looks whether its job has failed.
constexpr auto kPeriod = std::chrono::milliseconds(100);

int64_t nanoseconds(Clock::time_point time) { return time.time_since_epoch().count(); }

constexpr int64_t kMostNumber = std::numeric_limits<int64_t>::max();

int64_t number_of(const Json& json, int64_t least, int64_t most) {
  const bool fits = json.is_number_integer() && !(json.is_number_unsigned() && json.get<uint64_t>() > kMostNumber);
  check_input(fits && json.get<int64_t>() >= least && json.get<int64_t>() <= most, "found ", json.dump(),
              ", expected a number from ", least, " to ", most);
  return json.get<int64_t>();
}
uint64_t count_of(const Json& json) { return static_cast<uint64_t>(number_of(json, 0, kMostNumber)); }
int rank_of(const Json& json, int ranks) { return static_cast<int>(number_of(json, 0, ranks - 1)); }

// Nanoseconds. A Postmortem adds and subtracts several of them, and does not overflow within these limits.
constexpr int64_t kLongest = int64_t{1} << 59;         // 18 years
constexpr int64_t kLatestCalendar = int64_t{1} << 61;  // in 2043

Clock::duration duration_of(const Json& json) { return Clock::duration(number_of(json, -kLongest, kLongest)); }
Clock::time_point time_of(const Json& json) { return Clock::time_point(duration_of(json)); }

/// The value of an enum with a `last` and a `to_string`.
template <class E>
E value_of(const Json& name) {
  for (int value = 0; value <= static_cast<int>(E::last); ++value)
    if (to_string(static_cast<E>(value)) == name) return static_cast<E>(value);
  fail_input({"found ", name.dump(), ", expected a name that this version knows"});
}

DType dtype_of(const Json& name) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i64, DType::u8})
    if (to_string(dtype) == name) return dtype;
  fail_input({"found dtype ", name.dump(), ", expected f32, f64, bf16, i64 or u8"});
}

Json ranks_of(uint64_t bits) {
  Json ranks = Json::array();
  for (int rank = 0; rank < kMaxRanks; ++rank)
    if ((bits & rank_bit(rank)) != 0) ranks.push_back(rank);
  return ranks;
}

uint64_t bits_of(const Json& ranks) {
  uint64_t bits = 0;
  for (const Json& rank : ranks) bits |= rank_bit(rank_of(rank, kMaxRanks));
  return bits;
}

uint32_t sequence_of(const Json& json) {
  return static_cast<uint32_t>(number_of(json, 0, std::numeric_limits<uint32_t>::max()));
}

Json to_json(const OperationRecord& record) {
  return {{"sequence", record.message.sequence},
          {"operation", to_string(record.message.operation)},
          {"dtype", to_string(record.message.dtype)},
          {"count", record.message.count},
          {"payload", record.message.account == Account::payload},
          {"state", to_string(record.state)},
          {"queued", nanoseconds(record.queued)},
          {"started", nanoseconds(record.started)},
          {"ended", nanoseconds(record.ended)},
          {"bytes_sent", record.sent},
          {"bytes_received", record.received},
          {"to", ranks_of(record.targets)},
          {"from", ranks_of(record.sources)}};
}

OperationRecord operation_of(const Json& json) {
  return {.message = {.sequence = sequence_of(json.at("sequence")),
                      .operation = value_of<Operation>(json.at("operation")),
                      .dtype = dtype_of(json.at("dtype")),
                      .count = count_of(json.at("count")),
                      .account = json.at("payload") ? Account::payload : Account::overhead},
          .state = value_of<State>(json.at("state")),
          .queued = time_of(json.at("queued")),
          .started = time_of(json.at("started")),
          .ended = time_of(json.at("ended")),
          .sent = count_of(json.at("bytes_sent")),
          .received = count_of(json.at("bytes_received")),
          .targets = bits_of(json.at("to")),
          .sources = bits_of(json.at("from"))};
}

/// Everything except the operations.
Json head_of(const FlightRecord& record) {
  const Clock::duration calendar =
      std::chrono::system_clock::now().time_since_epoch() - Clock::now().time_since_epoch();
  Json head = {{"job", record.job.job},
               {"rank", record.rank},
               {"ranks", record.size},
               {"host", printable(host_name())},
               {"process", ::getpid()},
               {"written", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
               {"calendar", calendar.count()},
               {"failure", record.job.failure},
               {"failed", nanoseconds(record.job.failed)},
               {"now", nanoseconds(record.taken)}};
  if (record.job.clock) {
    head["clock_offset"] = record.job.clock->offset.count();
    head["clock_error"] = record.job.clock->error.count();
  }
  if (record.wait)
    head["wait"] = {
        {"for", record.wait->peer}, {"sequence", record.wait->sequence}, {"since", nanoseconds(record.wait->since)}};
  for (size_t peer = 0; peer < record.links.size(); ++peer) {
    const LinkRecord& link = record.links[peer];
    head["links"].push_back({{"peer", peer},
                             {"messages_sent", link.messages_sent},
                             {"bytes_sent", link.bytes_sent},
                             {"messages_received", link.messages_received},
                             {"bytes_received", link.bytes_received}});
  }
  return head;
}

std::string words_of(const Json& json) { return printable(json.get<std::string>()); }

FlightFile file_of(const Json& json) {
  FlightFile file = {.host = words_of(json.at("host")),
                     .process = number_of(json.at("process"), 0, kMostNumber),
                     .written = words_of(json.at("written")),
                     .calendar = Clock::duration(number_of(json.at("calendar"), -kLongest, kLatestCalendar))};
  FlightRecord& record = file.record;
  record.size = static_cast<int>(number_of(json.at("ranks"), 1, kMaxRanks));
  record.rank = rank_of(json.at("rank"), record.size);
  record.job = {.job = json.at("job"), .failure = words_of(json.at("failure")), .failed = time_of(json.at("failed"))};
  detail::check_job_name(record.job.job);
  record.taken = time_of(json.at("now"));
  if (json.contains("clock_offset"))
    record.job.clock = ClockOffset{duration_of(json.at("clock_offset")),
                                   Clock::duration(number_of(json.at("clock_error"), 0, kLongest))};
  if (json.contains("wait")) {
    const Json& wait = json.at("wait");
    record.wait = WaitRecord{static_cast<int>(number_of(wait.at("for"), -1, record.size - 1)),
                             sequence_of(wait.at("sequence")), time_of(wait.at("since"))};
    check_input(record.wait->peer != record.rank, "found a wait of rank ", record.rank, " for itself");
  }
  for (const Json& link : json.at("links"))
    record.links.push_back({.messages_sent = count_of(link.at("messages_sent")),
                            .bytes_sent = count_of(link.at("bytes_sent")),
                            .messages_received = count_of(link.at("messages_received")),
                            .bytes_received = count_of(link.at("bytes_received"))});
  check_input(std::ssize(record.links) == record.size, "found ", record.links.size(), " links, expected ", record.size);
  for (const Json& operation : json.at("operations")) record.operations.push_back(operation_of(operation));
  return file;
}

}  // namespace

fs::path flight_folder(const TrainSettings& settings) {
  if (!settings.checkpoint.empty()) return settings.checkpoint;
  return settings.log.empty() ? fs::path() : fs::absolute(settings.log).parent_path();
}

std::vector<fs::path> flight_files(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("flight-") && name.ends_with(".json")) found.push_back(entry.path());
  }
  return found;
}

fs::path write_flight_file(const fs::path& folder, const FlightRecord& record) {
  make_folder(folder);
  const fs::path path = folder / fmt::format("flight-{}-{}.json", record.job.job, record.rank);
  // A line for each operation, so that people can read it.
  std::string text = head_of(record).dump();
  text.pop_back();
  text += ",\n\"operations\":[";
  for (const OperationRecord& operation : record.operations)
    text += (text.ends_with('[') ? "\n" : ",\n") + to_json(operation).dump();
  text += "\n]}\n";
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
  return path;
}

FlightFile read_flight_file(const fs::path& path) {
  try {
    std::ifstream file(path, std::ios::binary);
    check_input(file.good(), "not readable");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return file_of(Json::parse(text));
  } catch (const Json::exception& error) {
    const std::string_view text = error.what();  // "[json.exception.parse_error.101] parse error at ..."
    fail_input({path.string(), ": no flight record: ", text.substr(text.find(']') + 2)});
  } catch (const Error& error) {
    fail_input({path.string(), ": no flight record: ", error.what()});
  }
}

std::string last_operation(const FlightRecord& record) {
  // The first that has not ended well. Those behind it wait for it.
  const auto& operations = record.operations;
  const auto open = std::ranges::find_if(operations, [](const auto& each) { return each.state != State::done; });
  if (open == operations.end()) {
    if (operations.empty()) return "no operation yet";
    const OperationRecord& last = operations.back();
    return fmt::format("{}, done {} ago", to_string(last.message), detail::seconds(record.taken - last.ended));
  }
  const bool failed = open->state == State::failed;
  std::string text = to_string(open->message);
  if (open->state == State::queued) return text + ", not begun";
  text += failed ? " failed after " : " runs for ";
  text += detail::seconds((failed ? open->ended : record.taken) - open->started);
  if (!record.wait || record.wait->sequence != open->message.sequence) return text;
  return text +
         fmt::format(" and {} for {}", failed ? "waited" : "waits",
                     record.wait->peer < 0 ? "others to take its messages" : fmt::format("rank {}", record.wait->peer));
}

FlightWatch::FlightWatch(const Communicator& communicator, fs::path folder, bool tells)
    : communicator_(communicator),
      folder_(std::move(folder)),
      tells_(tells),
      err_(STDERR_FILENO),
      wishes_(InterruptGuard::records_wanted()),
      thread_([this] { run(); }) {}

FlightWatch::~FlightWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  look();
}

void FlightWatch::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kPeriod, [this] { return ending_; })) look();
}

/// Without memory or disk, there is no record.
void FlightWatch::look() noexcept {
  try {
    const bool failed = trains_ && !written_ && !communicator_.state().failure.empty();
    const int64_t wishes = InterruptGuard::records_wanted();
    if (!failed && wishes == wishes_) return;
    wishes_ = wishes;
    written_ |= failed;
    write(communicator_.flight_record());
  } catch (...) {
  }
}

void FlightWatch::write(const FlightRecord& record) {
  const std::string rank = fmt::format("note: rank {}: ", record.rank);
  if (folder_.empty()) return err_.print(rank + last_operation(record));
  try {
    const fs::path path = write_flight_file(folder_, record);
    if (tells_) err_.print(fmt::format("{}its flight record is {}", rank, path.string()));
  } catch (const std::exception& error) {
    err_.print(join({rank, last_operation(record), "; there is no flight record: ", error.what()}));
  }
}

}  // namespace tern::trainer
