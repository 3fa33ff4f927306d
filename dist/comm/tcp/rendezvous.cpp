#include <algorithm>

#include "tern/core/error.h"
#include "tern/dist/comm/tcp.h"
#include "tern/dist/comm/tcp/handshake.h"
#include "tern/dist/comm/tcp/members.h"
#include "tern/dist/comm/tcp/monitor.h"

namespace tern::detail {
namespace {

/// Room for strangers and for the ranks, each of which may connect twice.
size_t places_of(int size) { return 64 + 2 * static_cast<size_t>(size); }

/// The rendezvous, seen from one rank.
class Meeting {
 public:
  Meeting(const TcpOptions& options, std::optional<Listener> listener, Monitor& monitor)
      : options_(options),
        listener_(std::move(listener)),
        monitor_(monitor),
        here_(static_cast<size_t>(options.size)),
        data_(static_cast<size_t>(options.size)) {
    begin_wait();
  }

  std::vector<Connection> hold() {
    if (options_.rank == 0)
      host();
    else
      join_in();
    return std::move(data_);
  }

 private:
  void host();
  void gather_members(Gate& gate);
  void join_in();
  void meet_others();
  Connection call(int peer, const Address& where, ConnectionKind kind);
  Hello introduce(const Socket& socket, ConnectionKind kind);
  bool means_rank_0s_machine(const std::string& host) const;
  void accept_data(Gate& gate);
  Admitted admit(Gate& gate, ConnectionKind kind);
  std::string objection_to(const Hello& hello, ConnectionKind kind) const;
  std::string missing() const;
  void await_all_from(int first);
  void begin_wait();
  void note(const std::string& awaited, const std::string& more = "");
  Clock::time_point deadline() const { return begin_ + options_.deadlines.rendezvous; }
  Gate gate() {
    return {*listener_, door_of(options_.rank), options_.wire, places_of(options_.size), options_.deadlines.handshake};
  }
  Door door_of(int rank) const { return {rank, options_.token}; }

  const TcpOptions& options_;
  std::optional<Listener> listener_;
  Monitor& monitor_;
  Clock::time_point begin_;      // begin of the current wait
  Clock::time_point next_note_;  // time of its next note
  std::vector<bool> here_;       // by rank: already connected, or not needed
  std::vector<Connection> data_;
};

void Meeting::host() {
  try {
    if (!listener_) listener_.emplace(options_.master);
    Gate entrance = gate();
    gather_members(entrance);
    accept_data(entrance);
  } catch (const PeerError& error) {
    monitor_.fail_all(error.what());
  }
}

void Meeting::gather_members(Gate& entrance) {
  const Hello self = make_hello(ConnectionKind::control, options_.wire, options_.epoch, 0, options_.size, 0);
  Members members = {make_job_name(), std::vector<Member>(static_cast<size_t>(options_.size))};
  members.ranks[0] = {host_of(self), self.process, options_.master};
  monitor_.set_name(0, members.ranks[0].name_of(0));
  await_all_from(1);
  for (int count = 1; count < options_.size; ++count) {
    Admitted peer = admit(entrance, ConnectionKind::control);
    const auto rank = static_cast<int>(peer.hello.rank);
    Member& member = members.ranks[peer.hello.rank];
    const std::string from = peer.connection.socket.remote().host;
    member = {host_of(peer.hello),
              peer.hello.process,
              {means_rank_0s_machine(from) ? options_.master.host : from, peer.hello.port}};
    monitor_.set_name(rank, member.name_of(rank));
    monitor_.watch(rank, std::move(peer.connection));
  }
  monitor_.set_job(members.job);
  monitor_.send_members(format(members));
}

void Meeting::join_in() {
  monitor_.watch(0, call(0, options_.master, ConnectionKind::control));
  try {
    meet_others();
  } catch (const Error& error) {
    monitor_.fail(options_.rank, join({"cannot meet the other ranks: ", error.what()}));
  }
}

void Meeting::meet_others() {
  // Rank 0 ends the job if a rank does not come. This rank's own limit is a little later.
  const auto late = Clock::now() + options_.deadlines.rendezvous + options_.deadlines.dead_after;
  const auto [job, members] = parse_members(monitor_.receive_members(late), options_.size);
  monitor_.set_job(job);
  for (int rank = 0; rank < options_.size; ++rank) monitor_.set_name(rank, members[rank].name_of(rank));
  begin_wait();
  for (int peer = 0; peer < options_.rank; ++peer)
    data_[peer] = call(peer, peer == 0 ? options_.master : members[peer].address, ConnectionKind::data);
  Gate entrance = gate();
  accept_data(entrance);
}

/// Connects and proves that it has the token, again and again until this rank is in. A busy machine, or strangers, may
/// have taken its place.
Connection Meeting::call(int peer, const Address& where, ConnectionKind kind) {
  std::string why;
  for (auto pause = std::chrono::milliseconds(5);; pause = std::min(2 * pause, std::chrono::milliseconds(200))) {
    const int interrupt = monitor_.failed_descriptor();
    Socket socket = connect(where, {std::min(deadline(), next_note_), interrupt}, why);
    if (socket.open()) {
      // After it has sent its proof, the rank may be in and must not connect again. So it waits as long as there is
      // time.
      const Hello hello = introduce(socket, kind);
      auto connection = knock(std::move(socket), hello, door_of(peer), where, {deadline(), interrupt});
      if (connection) return std::move(*connection);
      why = Clock::now() < deadline() ? "it closes the connection" : "it takes the connection and sends nothing";
    }
    monitor_.throw_if_failed();
    if (Clock::now() + pause >= deadline())
      throw PeerError(join({"rank ", options_.rank, ": rank ", peer, " does not answer at ", where, ": ", why}));
    note(join({"rank ", peer, " to answer at ", where}), "; " + why);
    wait_for(-1, 0, {Clock::now() + pause, interrupt});
  }
}

/// Whether `host`, the address of a connection to rank 0, means rank 0's machine only to ranks on that machine. This is
/// so if that machine takes its own name for 127.x.y.z and other machines may know it by the name.
bool Meeting::means_rank_0s_machine(const std::string& host) const {
  return options_.wire != Wire::plain && names_this_machine({host}) && !names_this_machine(options_.master);
}

/// A rank listens at the local address of its connection to rank 0, or at all addresses if others cannot use that one.
Hello Meeting::introduce(const Socket& socket, ConnectionKind kind) {
  if (!listener_) {
    const std::string here = socket.local().host;
    const char* const everywhere = here.find(':') == std::string::npos ? "0.0.0.0" : "::";
    listener_.emplace(Address{means_rank_0s_machine(here) ? everywhere : here, 0});
  }
  return make_hello(kind, options_.wire, options_.epoch, options_.rank, options_.size, listener_->address().port);
}

/// Accepts connections from all ranks above this one.
void Meeting::accept_data(Gate& entrance) {
  await_all_from(options_.rank + 1);
  for (int count = options_.rank + 1; count < options_.size; ++count) {
    Admitted peer = admit(entrance, ConnectionKind::data);
    data_[peer.hello.rank] = std::move(peer.connection);
  }
}

void Meeting::await_all_from(int first) {
  begin_wait();
  here_.assign(here_.size(), false);
  std::fill_n(here_.begin(), first, true);
}

void Meeting::begin_wait() {
  begin_ = Clock::now();
  next_note_ = begin_ + options_.deadlines.note;
}

/// Admits the next rank of those that are missing.
Admitted Meeting::admit(Gate& entrance, ConnectionKind kind) {
  const auto objection = [&](const Hello& hello) { return objection_to(hello, kind); };
  while (true) {
    const Until until = {std::min(deadline(), next_note_), monitor_.failed_descriptor()};
    if (auto peer = entrance.admit(objection, until)) {
      here_[peer->hello.rank] = true;
      return std::move(*peer);
    }
    monitor_.throw_if_failed();
    const std::string refusals = entrance.refusals();
    const std::string turned_away = refusals.empty() ? "" : "; turned away: " + refusals;
    if (Clock::now() >= deadline())
      throw PeerError(join({"rank ", missing(), " did not join rank ", options_.rank, " within ",
                            seconds(options_.deadlines.rendezvous), turned_away}));
    note(join({"rank ", missing(), " to join"}), turned_away);
  }
}

std::string Meeting::objection_to(const Hello& hello, ConnectionKind kind) const {
  const int own = options_.rank;
  if (static_cast<int>(hello.size) != options_.size)
    return join({"is one of ", hello.size, " ranks, rank ", own, " one of ", options_.size});
  if (hello.epoch != options_.epoch)
    return join({"is in epoch ", hello.epoch, " of the job, rank ", own, " in epoch ", options_.epoch});
  if (hello.rank >= hello.size || static_cast<int>(hello.rank) <= own)
    return join({"cannot join rank ", own, " of ", options_.size});
  if (hello.kind != kind || here_[hello.rank]) return "joins a second time";
  return "";
}

/// The missing ranks, for example "1, 3".
std::string Meeting::missing() const {
  std::string ranks;
  for (size_t rank = 0; rank < here_.size(); ++rank)
    if (!here_[rank]) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  return ranks;
}

void Meeting::note(const std::string& awaited, const std::string& more) {
  const auto now = Clock::now();
  if (now < next_note_) return;
  next_note_ = now + options_.deadlines.note;
  if (options_.note)
    options_.note(join(
        {"waiting for ", awaited, ": ", seconds(now - begin_), " of ", seconds(options_.deadlines.rendezvous), more}));
}

}  // namespace

std::vector<Connection> rendezvous(const TcpOptions& options, std::optional<Listener> listener, Monitor& monitor) {
  return Meeting(options, std::move(listener), monitor).hold();
}

}  // namespace tern::detail
