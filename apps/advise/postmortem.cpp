#include "tern/apps/advise/postmortem.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <set>

#include "tern/core/atomic_file.h"
#include "tern/core/error.h"
#include "tern/dist/comm/failure.h"
#include "tern/trainer/application.h"
#include "tern/trainer/flags/words.h"

namespace tern::advise {
namespace {

namespace fs = std::filesystem;
using State = OperationRecord::State;

/// A rank that waits for less does not hold up a job that runs.
constexpr Clock::duration kStall = std::chrono::seconds(1);

/// "rank 1" or "ranks 1, 3"
std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

const OperationRecord* find(const FlightRecord& record, uint32_t sequence) {
  const auto found =
      std::ranges::find_if(record.operations, [&](const auto& each) { return each.message.sequence == sequence; });
  return found == record.operations.end() ? nullptr : &*found;
}

std::string label_of(const FlightRecord& record, uint32_t sequence) {
  const OperationRecord* const operation = find(record, sequence);
  return operation ? to_string(operation->message) : fmt::format("operation {}", sequence);
}

}  // namespace

Postmortem Postmortem::read(const fs::path& folder) {
  check_input(fs::is_directory(folder), folder.string(), ": found no folder, expected one of --checkpoint or --log");
  std::map<std::string, std::vector<fs::path>> jobs;  // a job's name begins with its time
  for (const fs::path& path : trainer::flight_files(folder)) {
    const std::string name = path.stem().string();
    jobs[name.substr(0, name.rfind('-'))].push_back(path);
  }
  check_input(!jobs.empty(), folder.string(),
              ": found no flight-*.json, expected a folder of --checkpoint or --log with flight records, which ranks "
              "write when their job fails, and on SIGUSR1");
  std::vector<trainer::FlightFile> files;
  std::vector<std::string> damaged;
  for (const fs::path& path : jobs.rbegin()->second) {
    try {
      files.push_back(trainer::read_flight_file(path));
    } catch (const InputError& error) {
      damaged.emplace_back(error.what());
    }
  }
  check_input(!files.empty(), fmt::format("{}", fmt::join(damaged, "; ")));
  return Postmortem(std::move(files), std::move(damaged));
}

Postmortem::Postmortem(std::vector<trainer::FlightFile> files, std::vector<std::string> damaged)
    : damaged_(std::move(damaged)) {
  check_input(!files.empty(), "found no flight record");
  job_ = files.front().record.job.job;
  ranks_ = files.front().record.size;
  for (trainer::FlightFile& file : files) {
    const int rank = file.record.rank;
    check_input(file.record.size == ranks_, "job ", job_, ": found records of ", ranks_, " and of ", file.record.size,
                " ranks, expected those of one job");
    check_input(files_.try_emplace(rank, std::move(file)).second, "job ", job_, ": found two records of rank ", rank);
  }
  for (const auto& [rank, file] : files_)
    names_[rank] = fmt::format("rank {} ({}, process {})", rank, file.host, file.process);
  compare_clocks();
  drop_older();
  find_end();
  verdict_ = find_verdict();
}

/// A rank that has measured its clock's offset knows rank 0's clock, and so by which calendar it runs.
void Postmortem::compare_clocks() {
  const auto measured =
      std::ranges::find_if(files_, [](const auto& each) { return each.second.record.job.clock.has_value(); });
  const auto& known = measured == files_.end() ? files_.begin()->second : measured->second;
  const Clock::duration calendar = known.calendar - known.record.job.clock.value_or(ClockOffset{}).offset;
  for (const auto& [rank, file] : files_)
    offsets_[rank] = file.record.job.clock ? file.record.job.clock->offset : file.calendar - calendar;
}

/// The earliest time at which a rank heard of the failure; of a job that runs, at which one wrote its record.
void Postmortem::find_end() {
  end_ = Clock::time_point::max();
  for (const auto& [rank, file] : files_)
    end_ = std::min(end_, common(rank, failed() ? file.record.job.failed : file.record.taken));
}

/// If the job has failed, a record without a failure is older. Otherwise, ranks hear of one SIGUSR1 within a second or
/// so.
void Postmortem::drop_older() {
  constexpr auto kOneWish = std::chrono::seconds(2);
  Clock::time_point last = {};
  for (const auto& [rank, file] : files_) last = std::max(last, common(rank, file.record.taken));
  const bool with_failure = failed();
  for (auto each = files_.begin(); each != files_.end();) {
    const auto& [rank, file] = *each;
    const bool old = with_failure ? file.record.job.failure.empty() : common(rank, file.record.taken) < last - kOneWish;
    const auto here = each++;
    if (old) older_.insert(files_.extract(here));
  }
}

const FlightRecord* Postmortem::of(int rank) const {
  const auto found = files_.find(rank);
  return found == files_.end() ? nullptr : &found->second.record;
}

Postmortem::Clock::time_point Postmortem::common(int rank, Clock::time_point time) const {
  const auto offset = offsets_.find(rank);
  return offset == offsets_.end() ? time : time + offset->second;
}

bool Postmortem::failed() const {
  return std::ranges::any_of(files_, [](const auto& each) { return !each.second.record.job.failure.empty(); });
}

/// A wait that began after the end has another reason: the job had failed already.
std::optional<WaitRecord> Postmortem::wait_at_end(int rank) const {
  const FlightRecord* const record = of(rank);
  return record && record->wait && common(rank, record->wait->since) < end_ ? record->wait : std::nullopt;
}

std::optional<int> Postmortem::awaited(int rank) const {
  const auto wait = wait_at_end(rank);
  if (!wait) return {};
  if (wait->peer >= 0) return wait->peer;
  const FlightRecord& own = *of(rank);
  const OperationRecord* const operation = find(own, wait->sequence);
  for (int peer = 0; peer < ranks_; ++peer) {
    if (!operation || (operation->targets & rank_bit(peer)) == 0) continue;
    const FlightRecord* const other = of(peer);
    if (!other ||
        other->links[static_cast<size_t>(rank)].bytes_received < own.links[static_cast<size_t>(peer)].bytes_sent)
      return peer;
  }
  return {};
}

std::optional<Postmortem::Clock::time_point> Postmortem::waits_since(int rank) const {
  const auto wait = wait_at_end(rank);
  return wait ? std::optional(common(rank, wait->since)) : std::nullopt;
}

/// A rank whose record is damaged looks like a lost one, so only a rank with a record can be at fault then.
Postmortem::Verdict Postmortem::find_verdict() const {
  const Verdict verdict = follow_waits();
  if (damaged_.empty() || (verdict.rank && of(*verdict.rank))) return verdict;
  return {.sentence = "the fault is unknown: records are damaged"};
}

/// Follows who waits for whom, from every rank that waits. The rank at which most of these ways end is at fault.
Postmortem::Verdict Postmortem::follow_waits() const {
  std::map<int, int> votes;
  Clock::duration longest = {};
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!awaited(rank)) continue;
    longest = std::max(longest, end_ - *waits_since(rank));
    std::set<int> way;
    int last = rank;
    while (const auto next = way.insert(last).second ? awaited(last) : std::nullopt) last = *next;
    ++votes[awaited(last) ? std::ranges::min(circle_of(last)) : last];
  }
  if (votes.empty()) {
    if (const auto rank = last_behind()) return verdict_on(*rank);
    if (!failed() && stands()) return {.sentence = "the records do not tell who is at fault"};
    if (failed() || !without_record().empty()) return {.sentence = "no rank waits for another"};
  }
  if (!failed() && longest < kStall)
    return {.sentence = fmt::format("no rank has waited for {}, so the job goes on", detail::seconds(kStall))};
  const int rank = std::ranges::max_element(votes, {}, [](const auto& each) { return each.second; })->first;
  if (awaited(rank)) return {.rank = rank, .sentence = fault_of_circle(circle_of(rank))};
  return verdict_on(rank);
}

/// The rank that the failure names first: "rank 2 (node7, process 4711) sent nothing for 5 s".
std::optional<int> Postmortem::named() const {
  for (const auto& [rank, file] : files_) {
    const std::string& text = file.record.job.failure;
    constexpr std::string_view kRank = "rank ";
    int found = 0;
    if (text.starts_with(kRank) &&
        std::from_chars(text.data() + kRank.size(), text.data() + text.size(), found).ec == std::errc())
      return found;
  }
  return {};
}

/// A rank whose record lies elsewhere looks like a lost one. If several records are missing, the failure tells which
/// rank was lost.
Postmortem::Verdict Postmortem::verdict_on(int rank) const {
  const std::vector<int> missing = without_record();
  if (of(rank) || missing.size() == 1) return {.rank = rank, .sentence = fault_of(rank)};
  const auto lost = named();
  if (lost && std::ranges::count(missing, *lost)) return {.rank = lost, .sentence = fault_of(*lost)};
  const std::string waits = what_waits_for(rank, fmt::format("rank {}", rank));
  return {.sentence = fmt::format("the fault is unknown: there are no records of {}, bring all together{}",
                                  ranks_text(missing), waits.empty() ? "" : "; " + waits)};
}

std::vector<int> Postmortem::without_record() const {
  std::vector<int> missing;
  for (int rank = 0; rank < ranks_; ++rank)
    if (!of(rank)) missing.push_back(rank);
  return missing;
}

/// The first operation that `rank` had called at the end, and that had not ended well; null if there was none.
const OperationRecord* Postmortem::open_at_end(int rank) const {
  for (const OperationRecord& each : of(rank)->operations) {
    const bool ended = each.state == State::done && common(rank, each.ended) < end_;
    if (!ended) return common(rank, each.queued) < end_ ? &each : nullptr;
  }
  return nullptr;
}

/// Whether the job had failed, or a rank had been in an operation for long.
bool Postmortem::stands() const {
  return failed() || std::ranges::any_of(files_, [&](const auto& file) {
           const OperationRecord* const open = open_at_end(file.first);
           return open && end_ - common(file.first, open->queued) > kStall;
         });
}

/// If no rank waits for another, or the records do not tell: a rank without a record, or one that is behind the others
/// while the job stands.
std::optional<int> Postmortem::last_behind() const {
  if (!stands()) return {};
  std::map<uint32_t, int> last;  // the number of the last operation that was called, and a rank
  for (const auto& [rank, file] : files_) {
    const OperationRecord* const open = open_at_end(rank);
    const auto& all = file.record.operations;
    last.emplace(open ? open->message.sequence : all.empty() ? 0 : all.back().message.sequence, rank);
  }
  if (const auto missing = without_record(); !missing.empty()) return missing.front();
  return last.size() > 1 ? std::optional(last.begin()->second) : std::nullopt;
}

std::string Postmortem::name_of(int rank) const {
  const auto found = names_.find(rank);
  return found == names_.end() ? fmt::format("rank {}", rank) : found->second;
}

/// The last operation in which a message of `rank` came to another rank.
std::optional<OperationRecord> Postmortem::last_from(int rank) const {
  std::optional<OperationRecord> last;
  for (const auto& [other, file] : files_)
    for (const OperationRecord& operation : file.record.operations)
      if ((operation.sources & rank_bit(rank)) != 0 && (!last || operation.message.sequence > last->message.sequence))
        last = operation;
  return last;
}

/// "rank 6 waited for it in all_reduce_sum 8 of 1000 f32 for 5 s"; `it` is how the sentence calls `rank`.
std::string Postmortem::what_waits_for(int rank, const std::string& it) const {
  std::optional<int> longest;
  for (int other = 0; other < ranks_; ++other)
    if (awaited(other) == rank && (!longest || *waits_since(other) < *waits_since(*longest))) longest = other;
  if (!longest) return "";
  return fmt::format("rank {} waited for {} in {} for {}", *longest, it,
                     label_of(*of(*longest), wait_at_end(*longest)->sequence),
                     detail::seconds(end_ - *waits_since(*longest)));
}

std::string Postmortem::fault_of(int rank) const {
  const FlightRecord* const record = of(rank);
  std::string text = name_of(rank);
  if (!record) {
    text += " left no record, so it was killed or stopped, or its machine was lost";
    if (const auto last = last_from(rank))
      text += fmt::format("; its last message came in {}", to_string(last->message));
  } else if (wait_at_end(rank)) {
    text += fmt::format(" waited until others took its messages in {}", label_of(*record, record->wait->sequence));
  } else {
    const OperationRecord* const open = open_at_end(rank);
    const auto last = std::find_if(record->operations.rbegin(), record->operations.rend(), [&](const auto& each) {
      return each.state == State::done && common(rank, each.ended) < end_;
    });
    if (open)
      text += fmt::format(" was in {}, and waited for no rank", to_string(open->message));
    else if (last == record->operations.rend())
      text += " had not come to any operation";
    else
      text += fmt::format(" was in no operation since {}, which ended {} before", to_string(last->message),
                          detail::seconds(end_ - common(rank, last->ended)));
  }
  const std::string waits = what_waits_for(rank, "it");
  return waits.empty() ? text : text + "; " + waits;
}

/// The ranks that wait for each other, from `rank`, one of them.
std::vector<int> Postmortem::circle_of(int rank) const {
  std::vector<int> circle;
  for (int each = rank; !std::ranges::count(circle, each); each = *awaited(each)) circle.push_back(each);
  return circle;
}

/// A connection in a circle may have lost bytes.
std::string Postmortem::fault_of_circle(const std::vector<int>& circle) const {
  for (const int each : circle) {
    const int peer = *awaited(each);
    const FlightRecord* const other = of(peer);
    const uint64_t came = of(each)->links[static_cast<size_t>(peer)].bytes_received;
    const uint64_t sent = other ? other->links[static_cast<size_t>(each)].bytes_sent : came;
    if (sent > came)
      return fmt::format("the connection from {} to {}: {} bytes were under way for {} in {}", name_of(peer),
                         name_of(each), sent - came, detail::seconds(end_ - *waits_since(each)),
                         label_of(*of(each), wait_at_end(each)->sequence));
  }
  std::string text = fmt::format("{} wait for each other:", ranks_text(circle));
  for (const int each : circle)
    text += fmt::format("{} rank {} in {}", each == circle.front() ? "" : ",", each,
                        label_of(*of(each), wait_at_end(each)->sequence));
  return text;
}

std::string Postmortem::older_of(int rank) const {
  const auto found = older_.find(rank);
  if (found == older_.end()) return "no record";
  return fmt::format("no record since {}: {}", found->second.written, trainer::last_operation(found->second.record));
}

std::string Postmortem::headline() const {
  if (!verdict_.rank) return verdict_.sentence;
  return (failed() ? "at fault: " : "the others wait for: ") + verdict_.sentence;
}

std::string Postmortem::page() const {
  const std::vector<int> missing = without_record();
  std::set<std::string> causes;
  for (const auto& [rank, file] : files_)
    if (!file.record.job.failure.empty()) causes.insert(file.record.job.failure);
  std::string text =
      fmt::format("job {}: {} ranks, {} flight record{}{}\n", job_, ranks_, files_.size(),
                  files_.size() == 1 ? "" : "s", missing.empty() ? "" : ", none of " + ranks_text(missing));
  text += headline() + "\n";
  for (const std::string& cause : causes) text += fmt::format("the ranks say: {}\n", cause);
  for (const std::string& file : damaged_) text += fmt::format("left out: {}\n", file);
  text += "\n";
  for (int rank = 0; rank < ranks_; ++rank)
    text += fmt::format("{}: {}\n", name_of(rank), of(rank) ? trainer::last_operation(*of(rank)) : older_of(rank));
  Clock::duration error = {};
  std::vector<int> unknown;
  for (const auto& [rank, file] : files_) {
    if (!file.record.job.clock) unknown.push_back(rank);
    error = std::max(error, file.record.job.clock.value_or(ClockOffset{}).error);
  }
  text += unknown.size() == files_.size() ? "\nthe clocks were not compared"
                                          : fmt::format("\nclocks agree within {}", detail::seconds(error));
  if (!unknown.empty() && unknown.size() < files_.size())
    text += fmt::format("; not measured: {}", ranks_text(unknown));
  return text + "\n";
}

int run_postmortem(int argc, const char* const* argv) {
  std::string folder, picture;
  CLI::App app(
      "Says which rank made a job fail, or holds it up, and what each rank did last. It reads the flight records that "
      "the ranks write when their job fails, and on SIGUSR1. It draws the ranks' last seconds on one time axis.",
      "advise postmortem");
  app.add_option("DIR", folder,
                 "Folder of --checkpoint, or of the --log file. It may hold several jobs: the newest counts")
      ->required()
      ->type_name("");
  trainer::add_value_option(app, "--picture", "FILE", picture, "The picture, as SVG [DIR/postmortem.svg]");
  if (const auto text = trainer::parse_words(app, argc, argv, trainer::version_text("advise"))) {
    trainer::print_plainly(*text);
    return kDone;
  }
  const Postmortem postmortem = Postmortem::read(folder);
  const fs::path path = picture.empty() ? fs::path(folder) / "postmortem.svg" : fs::path(picture);
  for (const fs::path& record : trainer::flight_files(folder))
    check_input(!fs::exists(path) || !fs::equivalent(path, record), "--picture: ", path.string(),
                " is a flight record, expected another file");
  trainer::print_plainly(postmortem.page());
  const std::string svg = draw_timeline(postmortem);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(svg)));
  file.commit();
  trainer::print_plainly("picture: " + path.string() + "\n");
  return kDone;
}

}  // namespace tern::advise
