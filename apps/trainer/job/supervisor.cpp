#include "tern/trainer/job/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "tern/core/error.h"
#include "tern/dist/comm/socket.h"
#include "tern/dist/comm/token.h"
#include "tern/optim/checkpoint.h"
#include "tern/trainer/application.h"
#include "tern/trainer/flags/rules.h"
#include "tern/trainer/rank/flight.h"
#include "tern/trainer/rank/interrupt.h"

namespace tern::trainer {
namespace {

namespace fs = std::filesystem;

/// A second signal within this time counts as the same: `timeout` sends each to the process and to its group.
constexpr auto kOneWish = std::chrono::milliseconds(200);

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

/// Time for ranks to hear of another's end. If rank 0, which reports the cause, was lost itself, also to find the
/// cause.
Clock::duration patience_of(const TrainSettings& settings) {
  const Deadlines deadlines = rank_deadlines(settings);
  return deadlines.dead_after + 2 * deadlines.heartbeat + std::chrono::seconds(1);
}

}  // namespace

Supervisor::Supervisor(std::string name, const TrainSettings& settings, Console& console, char** argv)
    : name_(std::move(name)),
      settings_(settings),
      patience_(patience_of(settings)),
      grace_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(settings.grace))),
      console_(console),
      argv_(argv),
      token_(token_from_environment()) {
  if (token_.empty()) token_ = make_token();
  sigset_t set = set_of({SIGCHLD, SIGINT, SIGTERM, SIGUSR1});
  if (!ignores_hangup()) sigaddset(&set, SIGHUP);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  check(signals_ >= 0, "supervisor: no descriptor for signals: ", std::strerror(errno));
}

Supervisor::~Supervisor() {
  children_.clear();
  ::close(signals_);
  // The signals stay blocked: the exit code is fixed, and a late signal must not change it.
}

int Supervisor::run() {
  const fs::path folder = flight_folder(settings_);
  for (uint32_t epoch = 0;; ++epoch) {
    const size_t records = flight_files(folder).size();
    start(epoch);
    const int code = watch();
    if (code == kLostPeer && flight_files(folder).size() > records)
      say(fmt::format("`advise postmortem {}` tells what each rank did last", folder.string()));
    if (code != kLostPeer || asked_ || epoch == settings_.max_restarts) return code;
    const auto kept = latest_checkpoint(settings_.checkpoint);
    say(fmt::format("restart {} of {}, from {}", epoch + 1, settings_.max_restarts,
                    kept ? kept->string() : "the beginning"));
  }
}

void Supervisor::start(uint32_t epoch) {
  children_.clear();
  cause_.reset();
  failed_.reset();
  interrupted_.reset();
  lost_ = false;
  told_.clear();
  echoes_.clear();
  pulses_ = std::make_unique<PulseMemory>();
  const detail::Listener listener(settings_.bind.empty() ? Address{} : listening_address(settings_));
  const Address master = listener.address();
  const int64_t ranks = *settings_.workers;
  for (int rank = 0; rank < ranks; ++rank) {
    // A signal that comes before the rank is ready waits, so that it does not end one rank before the others.
    ChildPlan plan = {.rank = rank,
                      .argv = argv_,
                      .keep_open = {pulses_->descriptor()},
                      .blocked = set_of({SIGINT, SIGTERM, SIGHUP}),
                      .last_words = name_ + ": "};
    plan.environment = {fmt::format("TERN_RANK={}", rank),
                        fmt::format("TERN_WORLD_SIZE={}", ranks),
                        fmt::format("TERN_LOCAL_WORLD_SIZE={}", ranks),
                        "TERN_MASTER_ADDR=" + master.host,
                        fmt::format("TERN_MASTER_PORT={}", master.port),
                        fmt::format("TERN_EPOCH={}", epoch),
                        fmt::format("TERN_SUPERVISOR={}", ::getpid()),
                        fmt::format("TERN_PULSE={}", pulses_->descriptor()),
                        "TERN_TOKEN=" + token_,
                        "TERN_TOKEN_FILE="};  // it may no longer exist when a rank is restarted
    if (rank == 0) {
      plan.keep_open.push_back(listener.descriptor());
      plan.environment.push_back(fmt::format("TERN_LISTENER={}", listener.descriptor()));
    }
    children_.push_back(std::make_unique<Child>(plan, console_));
  }
}

int Supervisor::watch() {
  while (any_running()) {
    wait();
    for (const auto& child : children_) child->relay();
    console_.out.flush();
    console_.err.flush();
    take_signals();
    reap();
    end_stragglers();
  }
  tell_of_ends();
  return exit_code();
}

/// Waits until a child writes or ends, a reader takes pending output, a signal comes or the deadline passes.
void Supervisor::wait() const {
  std::vector<pollfd> entries = {
      {signals_, POLLIN, 0}, {console_.out.descriptor(), POLLOUT, 0}, {console_.err.descriptor(), POLLOUT, 0}};
  for (const auto& child : children_)
    for (const LineRelay* relay : {&child->out, &child->err}) entries.push_back({relay->descriptor(), POLLIN, 0});
  const auto time = due();
  ::poll(entries.data(), entries.size(), time ? detail::poll_timeout(*time) : -1);
}

void Supervisor::take_signals() {
  signalfd_siginfo info;
  while (::read(signals_, &info, sizeof info) == sizeof info)
    if (const auto signal = static_cast<int>(info.ssi_signo); signal != SIGCHLD) take_signal(signal);
}

/// After the first signal, the ranks may finish their step. A second signal kills them. SIGUSR1 only asks for flight
/// records.
void Supervisor::take_signal(int signal) {
  if (signal == SIGUSR1) {
    for (const auto& child : children_) child->send(signal);
    if (const fs::path folder = flight_folder(settings_); !folder.empty())
      say("note: each rank writes its flight record to " + folder.string());
    return;
  }
  if (!asked_) {
    asked_ = Clock::now();
    for (const auto& child : children_) child->send(signal == SIGHUP ? SIGTERM : signal);
  } else if (signal != SIGHUP && Clock::now() - *asked_ > kOneWish) {  // a closing terminal sends several SIGHUP
    impatient_ = true;
    for (const auto& child : children_) child->kill();
  }
}

void Supervisor::reap() {
  for (const auto& child : children_) {
    if (!child->look()) continue;
    note_end(*child);
    tell_last_words(*child);
  }
}

/// A rank that exits with code 3 does so because of another rank, which may be seen to end only later.
void Supervisor::note_end(const Child& child) {
  const bool by_itself = child.signal() == 0;
  if (by_itself && child.code() == kDone) return;
  if (child.killed() || (by_itself && child.code() == kLostPeer))
    lost_ = true;
  else if (!cause_)
    cause_ = by_itself ? child.code() : kLostPeer;
  auto& since = by_itself && child.code() == kInterrupted ? interrupted_ : failed_;
  if (!since) since = Clock::now();
}

/// Several ranks may report the same bad input: print each message once. Hold back what ranks say about a lost rank,
/// because that rank's own message is better.
void Supervisor::tell_last_words(Child& child) {
  while (child.out.pump() || child.err.pump()) continue;
  const std::string sentence = child.err.take_last_words();
  if (sentence.empty()) return;
  const int code = child.signal() == 0 ? child.code() : kLostPeer;
  if (code == kLostPeer && !child.killed())
    echoes_.try_emplace(sentence, &child);
  else if (code != kBadInput || told_.insert(sentence).second)
    child.err.print(sentence);
}

void Supervisor::tell_of_ends() {
  if (told_.empty())
    for (const auto& [sentence, child] : echoes_) child->err.print(sentence);
  for (const auto& child : children_) {
    const bool asked = asked_ && (child->signal() == SIGINT || child->signal() == SIGTERM);
    if (child->signal() != 0 && !child->killed() && !asked)
      say(fmt::format("rank {} (process {}) was ended by signal {} ({})", child->rank(), child->id(), child->signal(),
                      strsignal(child->signal())));
  }
}

/// If a rank is lost after a user asked for the end, it is not a failure.
int Supervisor::exit_code() const {
  const int code = cause_.value_or(lost_ ? kLostPeer : kDone);
  return impatient_ || (asked_ && code == kLostPeer) ? kInterrupted : code;
}

/// When to kill the remaining ranks; nullopt if there is no reason to.
std::optional<Supervisor::Clock::time_point> Supervisor::due() const {
  std::optional<Clock::time_point> earliest;
  const auto add = [&](std::optional<Clock::time_point> since, Clock::duration time) {
    if (since) earliest = std::min(earliest.value_or(Clock::time_point::max()), *since + time);
  };
  const auto progress = last_progress();
  if (!progress) return {};
  if (failed_) add(std::max(*failed_, *progress), patience_);
  if (const auto since = asked_ ? asked_ : interrupted_) add(std::max(*since, *progress), grace_);
  // The other ranks cannot detect a rank that was stopped before it joined.
  if (!failed_)
    for (const auto& child : children_) add(child->stopped_since(), patience_);
  return earliest;
}

/// The latest progress of the running ranks; a stopped rank makes none. Nullopt if all have ended or are being killed.
std::optional<Supervisor::Clock::time_point> Supervisor::last_progress() const {
  std::optional<Clock::time_point> latest;
  for (const auto& child : children_)
    if (child->running() && !child->killed())
      latest = std::max(latest.value_or(Clock::time_point()),
                        child->stopped() ? Clock::time_point() : pulses_->of(child->rank()).last());
  return latest;
}

/// After a rank has failed, the others end by themselves, unless they hang or are stopped. A stopped rank is not killed
/// while other ranks may still detect it.
void Supervisor::end_stragglers() {
  const auto time = due();
  if (!time) return;
  const bool nobody_ends = failed_ && std::ranges::all_of(children_, [](const auto& child) {
                             return !child->running() || child->stopped();
                           });
  if (Clock::now() < *time && !nobody_ends) return;
  for (const auto& child : children_) {
    if (!child->running() || child->killed()) continue;
    if (child->stopped())
      say(fmt::format("rank {} (process {}) is stopped: killing it", child->rank(), child->id()));
    else if (failed_)
      say(fmt::format("rank {} (process {}) did not end with the others: killing it", child->rank(), child->id()));
    else if (asked_ || interrupted_)
      say(fmt::format("rank {} (process {}) did not end within {} s of its last progress: killing it", child->rank(),
                      child->id(), settings_.grace));
    child->kill();
  }
}

bool Supervisor::any_running() const {
  return std::ranges::any_of(children_, [](const auto& child) { return child->running(); });
}

void Supervisor::say(const std::string& sentence) const { print_over_live_line(console_.err, name_ + ": " + sentence); }

}  // namespace tern::trainer
