#include "tern/apps/trainer/job/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "tern/apps/trainer/application.h"
#include "tern/apps/trainer/worker_settings.h"
#include "tern/core/error.h"
#include "tern/dist/socket.h"
#include "tern/dist/token.h"
#include "tern/optim/checkpoint.h"

namespace tern {
namespace {

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

/// Time for ranks to hear of another's end, and to settle the cause where rank 0, which tells it, was lost itself.
Clock::duration patience_of(const TrainSettings& settings) {
  const Deadlines deadlines = rank_deadlines(settings);
  return deadlines.dead_after + 2 * deadlines.heartbeat + std::chrono::seconds(1);
}

}  // namespace

Supervisor::Supervisor(std::string name, const TrainSettings& settings, char** argv)
    : name_(std::move(name)),
      settings_(settings),
      patience_(patience_of(settings)),
      argv_(argv),
      token_(token_from_environment()) {
  if (token_.empty()) token_ = make_token();
  ::signal(SIGCHLD, SIG_DFL);  // inherited as ignored, it would hide how children end
  const sigset_t set = watched_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  check(signals_ >= 0, "supervisor: no descriptor for signals: ", std::strerror(errno));
}

Supervisor::~Supervisor() {
  children_.clear();
  ::close(signals_);
  const sigset_t set = watched_signals();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

int Supervisor::run() {
  for (uint32_t epoch = 0;; ++epoch) {
    start(epoch);
    const int code = watch();
    if (code != kLostPeer || interrupts_ > 0 || epoch == settings_.max_restarts) return code;
    const auto kept = latest_checkpoint(settings_.checkpoint);
    say(fmt::format("restart {} of {}, from {}", epoch + 1, settings_.max_restarts,
                    kept ? kept->string() : "the beginning"));
  }
}

void Supervisor::start(uint32_t epoch) {
  children_.clear();
  cause_.reset();
  deadline_.reset();
  lost_ = false;
  const detail::Listener listener(settings_.bind.empty() ? Address{} : listening_address(settings_));
  const Address master = listener.address();
  const int64_t ranks = *settings_.workers;
  for (int rank = 0; rank < ranks; ++rank) {
    ChildPlan plan = {.rank = rank, .argv = argv_};
    plan.environment = {fmt::format("TERN_RANK={}", rank),
                        fmt::format("TERN_WORLD_SIZE={}", ranks),
                        fmt::format("TERN_LOCAL_WORLD_SIZE={}", ranks),
                        "TERN_MASTER_ADDR=" + master.host,
                        fmt::format("TERN_MASTER_PORT={}", master.port),
                        fmt::format("TERN_EPOCH={}", epoch),
                        fmt::format("TERN_SUPERVISOR={}", ::getpid()),
                        "TERN_TOKEN=" + token_};
    if (rank == 0) {
      plan.keep_open = listener.descriptor();
      plan.environment.push_back(fmt::format("TERN_LISTENER={}", plan.keep_open));
    }
    children_.push_back(std::make_unique<Child>(plan));
  }
}

int Supervisor::watch() {
  while (any_running()) {
    wait();
    for (const auto& child : children_) {
      child->out.pump();
      child->err.pump();
    }
    take_signals();
    reap();
    end_stragglers();
  }
  for (const auto& child : children_) {
    child->out.pump();
    child->err.pump();
  }
  for (const auto& child : children_)
    if (child->signal() != 0 && !child->killed())
      say(fmt::format("rank {} (process {}) was ended by signal {} ({})", child->rank(), child->id(), child->signal(),
                      strsignal(child->signal())));
  if (interrupts_ > 1) return kInterrupted;
  return cause_.value_or(lost_ ? kLostPeer : kDone);
}

/// Until a child writes or ends, a signal comes or the deadline is there.
void Supervisor::wait() const {
  std::vector<pollfd> entries = {{signals_, POLLIN, 0}};
  for (const auto& child : children_)
    for (const LineRelay* relay : {&child->out, &child->err}) entries.push_back({relay->descriptor(), POLLIN, 0});
  const auto time = due();
  ::poll(entries.data(), entries.size(), time ? detail::poll_timeout(*time) : -1);
}

void Supervisor::take_signals() {
  signalfd_siginfo info;
  while (::read(signals_, &info, sizeof info) == sizeof info) {
    const auto signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    ++interrupts_;
    // The first lets the ranks end their step; a second does not wait for them.
    for (const auto& child : children_) {
      if (interrupts_ > 1)
        child->kill();
      else
        child->send(signal == SIGHUP ? SIGTERM : signal);
    }
  }
}

void Supervisor::reap() {
  for (const auto& child : children_)
    if (child->look()) note_end(*child);
}

/// A rank that ends with code 3 does so because of another, which may be seen to end only later.
void Supervisor::note_end(const Child& child) {
  if (child.signal() == 0 && child.code() == kDone) return;
  if (child.killed() || (child.signal() == 0 && child.code() == kLostPeer))
    lost_ = true;
  else if (!cause_)
    cause_ = child.signal() != 0 ? kLostPeer : child.code();
  if (!deadline_) deadline_ = Clock::now() + patience_;
}

/// When the ranks that are left are to be killed: never while all is well.
std::optional<Supervisor::Clock::time_point> Supervisor::due() const {
  if (deadline_) return deadline_;
  // A rank that was stopped before it had joined is in no other rank's sight.
  std::optional<Clock::time_point> earliest;
  for (const auto& child : children_)
    if (const auto since = child->stopped_since())
      earliest = std::min(earliest.value_or(Clock::time_point::max()), *since + patience_);
  return earliest;
}

/// Once a rank has failed, the others end by themselves, unless they hang or are stopped. One that is stopped is left
/// alone while others may still be about to find out that it is.
void Supervisor::end_stragglers() {
  const auto time = due();
  if (!time) return;
  const bool nobody_ends = deadline_ && std::ranges::all_of(children_, [](const auto& child) {
                             return !child->running() || child->stopped();
                           });
  if (Clock::now() < *time && !nobody_ends) return;
  for (const auto& child : children_) {
    if (!child->running() || child->killed()) continue;
    if (child->stopped())
      say(fmt::format("rank {} (process {}) is stopped: killing it", child->rank(), child->id()));
    else if (deadline_)
      say(fmt::format("rank {} (process {}) did not end with the others: killing it", child->rank(), child->id()));
    child->kill();
  }
}

bool Supervisor::any_running() const {
  return std::ranges::any_of(children_, [](const auto& child) { return child->running(); });
}

void Supervisor::say(const std::string& sentence) const {
  std::fprintf(stderr, "%s: %s\n", name_.c_str(), sentence.c_str());
}

}  // namespace tern
