#include "tern/dist/tcp/rendezvous.h"

#include <poll.h>
#include <unistd.h>

#include <sstream>

#include "tern/core/error.h"
#include "tern/dist/in_process.h"
#include "tern/dist/tcp/handshake.h"

namespace tern::detail {
namespace {

struct Member {
  std::string host = "-";
  uint32_t process = 0;
  Address address;
};

std::string name_of(int rank, const Member& member) {
  return join({"rank ", rank, " (", member.host, ", process ", member.process, ")"});
}

std::string format(const std::vector<Member>& members) {
  std::ostringstream text;
  for (const Member& m : members)
    text << m.host << ' ' << m.process << ' ' << m.address.host << ' ' << m.address.port << '\n';
  return text.str();
}

std::vector<Member> parse(const std::string& text, int size) {
  std::istringstream stream(text);
  std::vector<Member> members(size);
  for (Member& m : members) stream >> m.host >> m.process >> m.address.host >> m.address.port;
  check(!stream.fail(), "sent a list of ranks that is not whole");
  return members;
}

/// The ranks' meeting, from one rank's side.
class Meeting {
 public:
  Meeting(const TcpOptions& options, std::optional<Listener> listener)
      : options_(options), listener_(std::move(listener)), deadline_(Clock::now() + options.deadlines.rendezvous) {
    mesh_.data.resize(options.size);
  }

  Mesh hold() {
    if (options_.rank == 0)
      host();
    else
      join_in();
    return std::move(mesh_);
  }

 private:
  void host();
  void gather_members(Gate& gate);
  void join_in();
  std::vector<Member> read_members();
  Socket call(const Address& where, Purpose purpose);
  void accept_data(Gate& gate, int first);
  [[noreturn]] void fail_missing(const std::vector<bool>& here, const Gate& gate) const;
  Gate gate() { return {*listener_, options_.epoch, options_.size, options_.token, options_.deadlines.handshake}; }
  void name(const std::vector<Member>& members) {
    for (int rank = 0; rank < options_.size; ++rank) mesh_.names.push_back(name_of(rank, members[rank]));
  }

  const TcpOptions& options_;
  std::optional<Listener> listener_;
  Clock::time_point deadline_;
  Mesh mesh_;
};

void Meeting::host() {
  if (!listener_) listener_.emplace(options_.master);
  Gate entrance = gate();
  try {
    gather_members(entrance);
    accept_data(entrance, 1);
  } catch (const PeerError& error) {
    for (ControlLink& link : mesh_.control)
      write_control(link.socket, {.type = FrameType::abort, .epoch = options_.epoch}, error.what(),
                    Clock::now() + std::chrono::milliseconds(100));
    throw;
  }
}

void Meeting::gather_members(Gate& entrance) {
  const Hello self = make_hello(Purpose::control, options_.epoch, 0, options_.size, 0);
  std::vector<Member> members(options_.size);
  members[0] = {self.host.data(), self.process, options_.master};
  std::vector<bool> here(options_.size);
  here[0] = true;
  while (mesh_.control.size() + 1 < here.size()) {
    auto peer = entrance.admit(deadline_);
    if (!peer) fail_missing(here, entrance);
    const Hello& hello = peer->hello;
    if (here[hello.rank])
      throw PeerError(join({"rank ", hello.rank, " joined twice, from process ", members[hello.rank].process,
                            " and from ", hello.process}));
    here[hello.rank] = true;
    members[hello.rank] = {hello.host.data(), hello.process, {peer->socket.remote().host, hello.port}};
    mesh_.control.push_back({static_cast<int>(hello.rank), std::move(peer->socket)});
  }
  for (ControlLink& link : mesh_.control)
    write_control(link.socket, {.type = FrameType::members, .epoch = options_.epoch}, format(members), deadline_);
  name(members);
}

void Meeting::join_in() {
  Socket control = [&] {
    std::string why;
    Socket socket = connect(options_.master, deadline_, why);
    if (!socket.open())
      throw PeerError(join({"rank ", options_.rank, ": rank 0 does not answer at ", options_.master, ": ", why}));
    return socket;
  }();
  listener_.emplace(Address{control.local().host, 0});
  knock(control, make_hello(Purpose::control, options_.epoch, options_.rank, options_.size, listener_->address().port),
        options_.token, options_.master, deadline_);
  mesh_.control.push_back({0, std::move(control)});
  const std::vector<Member> members = read_members();
  name(members);
  for (int peer = 0; peer < options_.rank; ++peer)
    mesh_.data[peer] = call(peer == 0 ? options_.master : members[peer].address, Purpose::data);
  Gate entrance = gate();
  accept_data(entrance, options_.rank + 1);
}

std::vector<Member> Meeting::read_members() {
  ControlLink& link = mesh_.control.front();
  Frame frame;
  std::string text;
  while (!take_control(link.inbox, frame, text)) {
    std::byte byte;  // one by one: what comes after this frame is the monitor's
    if (!link.socket.read_all({&byte, 1}, deadline_))
      throw PeerError(join({"rank 0 at ", options_.master, " left before all ranks had joined"}));
    link.inbox.push_back(byte);
  }
  if (frame.type == FrameType::abort) throw PeerError(text);
  check(frame.type == FrameType::members, "rank 0 sent a frame of type ", static_cast<int>(frame.type));
  return parse(text, options_.size);
}

Socket Meeting::call(const Address& where, Purpose purpose) {
  std::string why;
  Socket socket = connect(where, deadline_, why);
  if (!socket.open()) throw PeerError(join({"rank ", options_.rank, ": no rank answers at ", where, ": ", why}));
  knock(socket, make_hello(purpose, options_.epoch, options_.rank, options_.size, 0), options_.token, where, deadline_);
  return socket;
}

/// Connections from all ranks from `first` on.
void Meeting::accept_data(Gate& entrance, int first) {
  std::vector<bool> here(options_.size);
  std::fill_n(here.begin(), first, true);
  for (int count = first; count < options_.size; ++count) {
    auto peer = entrance.admit(deadline_);
    if (!peer) fail_missing(here, entrance);
    const auto rank = static_cast<int>(peer->hello.rank);
    if (peer->hello.purpose != Purpose::data || here[rank])
      throw PeerError(join({"rank ", rank, " (process ", peer->hello.process, ") joined twice"}));
    here[rank] = true;
    mesh_.data[rank] = std::move(peer->socket);
  }
}

void Meeting::fail_missing(const std::vector<bool>& here, const Gate& entrance) const {
  std::string missing;
  for (size_t rank = 0; rank < here.size(); ++rank)
    if (!here[rank]) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  const std::string& refused = entrance.refused();
  throw PeerError(join({"rank ", missing, " did not join rank ", options_.rank, " within ",
                        seconds(options_.deadlines.rendezvous), refused.empty() ? "" : "; turned away: ", refused}));
}

void check_options(const TcpOptions& options) {
  check_input(options.size >= 1 && options.size <= kMaxRanks && options.rank >= 0 && options.rank < options.size,
              "rank ", options.rank, " of ", options.size, ", expected 0 to ", kMaxRanks - 1, " of 1 to ", kMaxRanks);
  check_input(!options.token.empty(), "rank ", options.rank,
              ": found no job token, by which ranks know each other: give all of them one in TERN_TOKEN, or in a file "
              "that TERN_TOKEN_FILE names");
}

}  // namespace

Mesh rendezvous(const TcpOptions& options, std::optional<Listener> listener) {
  check_options(options);
  return Meeting(options, std::move(listener)).hold();
}

}  // namespace tern::detail
