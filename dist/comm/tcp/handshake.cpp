#include "tern/dist/comm/tcp/handshake.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "tern/core/error.h"
#include "tern/core/escaped.h"
#include "tern/core/program.h"
#include "tern/dist/comm/failure.h"
#include "tern/dist/comm/tcp/tls.h"

namespace tern::detail {
namespace layout {

/// The listener's answer to a Hello.
struct Challenge {
  uint32_t magic;
  uint16_t version;
  uint16_t zero;
  Digest nonce;
  Digest proof;  // over the direction, the hello and the fields above
};
static_assert(sizeof(Challenge) == 72);

}  // namespace layout
namespace {

using layout::Challenge;

constexpr uint32_t kHelloMagic = 0x4f4c4548;  // "HELO"
/// Connections that are accepted in a row before the pending ones are served again.
constexpr int kBurst = 256;
/// Different reasons that are kept, for strangers and for members each.
constexpr size_t kMostReasons = 16;

/// The listener's last answer: the length of a text, then the text. The text is empty if the listener admits the rank.
using VerdictLength = uint32_t;
constexpr VerdictLength kMaxVerdict = 4096;

template <class T>
ConstBytes bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::vector<std::byte> joined(std::initializer_list<ConstBytes> parts) {
  std::vector<std::byte> all;
  for (const ConstBytes part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

ConstBytes letters(std::string_view text) { return std::as_bytes(std::span(text)); }

Digest server_proof(const JobToken& token, const Hello& hello, const Challenge& challenge) {
  return hmac(token, joined({letters("tern listener"), bytes_of(hello),
                             bytes_of(challenge).first(offsetof(Challenge, proof))}));
}
Digest client_proof(const JobToken& token, const Hello& hello, const Challenge& challenge) {
  return hmac(token, joined({letters("tern caller"), bytes_of(hello), bytes_of(challenge)}));
}

/// The seal of the frames that the caller sends, or of those that the listener sends.
FrameSeal seal_of(const JobToken& token, const Hello& hello, const Challenge& challenge, bool by_caller) {
  if (hello.wire == Wire::tls) return FrameSeal::of_tls();
  if (hello.wire == Wire::plain) return FrameSeal::checksum();
  return FrameSeal::mac(derive_key(token, joined({hello.nonce, challenge.nonce}),
                                   by_caller ? "tern frames of the caller" : "tern frames of the listener"));
}

/// What a caller tells a listener in TLS's first message, unencrypted.
struct Identity {
  uint32_t epoch = 0, caller = 0, listener = 0;

  std::string text() const { return join({"tern epoch ", epoch, " rank ", caller, " to ", listener}); }
  Digest key(const JobToken& token) const { return derive_key(token, letters("tern TLS"), text()); }
};

std::optional<Identity> parse_identity(std::string_view text) {
  Identity found;
  const auto take = [&](std::string_view word, uint32_t& number) {
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return error == std::errc();
  };
  const bool whole = take("tern epoch ", found.epoch) && take(" rank ", found.caller) && take(" to ", found.listener);
  return whole && text.empty() ? std::optional(found) : std::nullopt;
}

template <class T>
Bytes writable(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

/// Whether bytes begin like a handshake of TLS.
bool is_tls(ConstBytes bytes) { return bytes[0] == std::byte{0x16} && bytes[1] == std::byte{0x03}; }

bool is_other_wire(ConstBytes bytes) { return std::ranges::equal(bytes.first(kOtherWire.size()), kOtherWire); }

/// Writes without waiting. A new connection has room for the few bytes of a handshake.
bool write_now(Socket& socket, ConstBytes bytes) { return socket.write_all(bytes, Clock::now()); }

bool write_verdict(Socket& socket, std::string_view text) {
  text = text.substr(0, kMaxVerdict);
  const auto length = static_cast<VerdictLength>(text.size());
  std::vector<std::byte> bytes(sizeof length + text.size());
  std::memcpy(bytes.data(), &length, sizeof length);
  std::ranges::copy(std::as_bytes(std::span(text)), bytes.begin() + sizeof length);
  return write_now(socket, bytes);
}

}  // namespace

Hello make_hello(ConnectionKind kind, Wire wire, uint32_t epoch, int rank, int size, uint16_t port) {
  Hello hello = {kHelloMagic,
                 kProtocolVersion,
                 kind,
                 wire,
                 epoch,
                 static_cast<uint32_t>(rank),
                 static_cast<uint32_t>(size),
                 static_cast<uint32_t>(::getpid()),
                 port,
                 0,
                 {},
                 random_bytes()};
  host_name().copy(hello.host.data(), hello.host.size() - 1);
  return hello;
}

std::string host_of(const Hello& hello) {
  const std::string_view host(hello.host.data(), hello.host.size());
  return printable(host.substr(0, host.find('\0')));
}

std::optional<Connection> knock(Socket socket, const Hello& caller, const Door& door, const Address& where,
                                Until until) {
  Hello hello = caller;
  hello.listener = static_cast<uint16_t>(door.rank);
  const auto must = [&](bool holds, const auto&... cause) {
    if (!holds) throw PeerError(join({"rank ", hello.rank, ": ", where, " ", cause...}));
  };
  if (hello.wire == Wire::tls) {
    const Identity identity = {hello.epoch, hello.rank, hello.listener};
    socket.protect(Tls::caller(identity.text(), identity.key(door.token)));
    try {
      if (!socket.shake_hands(until)) return std::nullopt;
    } catch (const TlsError& error) {
      must(false, error.what());
    } catch (const Error&) {
      return std::nullopt;  // it closed the connection
    }
  }
  Challenge challenge = {};
  if (!socket.write_all(bytes_of(hello), until)) return std::nullopt;
  if (!socket.read_all(writable(challenge), until)) {
    must(!is_other_wire(bytes_of(challenge)), "has --wire tls, rank ", hello.rank, " has --wire ", hello.wire);
    return std::nullopt;
  }
  must(challenge.magic == kHelloMagic, "did not answer as a tern rank");
  must(challenge.version == kProtocolVersion, "speaks version ", challenge.version, " of the protocol, rank ",
       hello.rank, " version ", kProtocolVersion);
  must(is_same(challenge.proof, server_proof(door.token, hello, challenge)), "holds another job token than rank ",
       hello.rank);
  VerdictLength length = 0;
  if (!socket.write_all(bytes_of(client_proof(door.token, hello, challenge)), until) ||
      !socket.read_all(writable(length), until))
    return std::nullopt;
  must(length <= kMaxVerdict, "answers with ", length, " bytes, expected ", kMaxVerdict, " at most");
  std::string verdict(length, '\0');
  if (!socket.read_all(std::as_writable_bytes(std::span(verdict)), until)) return std::nullopt;
  if (!verdict.empty()) throw PeerError(printable(verdict));
  return Connection{std::move(socket), seal_of(door.token, hello, challenge, true),
                    seal_of(door.token, hello, challenge, false)};
}

/// A connection that has not proved yet that it has the token.
struct Gate::Pending {
  Socket socket;
  Clock::time_point deadline;
  bool secured = false;     // TLS has its keys, or is not used
  bool challenged = false;  // it has sent its hello
  size_t got = 0;           // bytes received of the hello or the proof
  Hello hello = {};
  Challenge challenge = {};
  Digest proof = {};

  /// OpenSSL has checked an identity's key, or the connection is dropped.
  bool silent() const { return !challenged && (socket.tls() == nullptr || socket.tls()->identity().empty()); }
};

Gate::Gate(Listener& listener, Door door, Wire wire, size_t places, Clock::duration limit)
    : listener_(listener), door_(std::move(door)), wire_(wire), places_(places), limit_(limit) {}

Gate::~Gate() = default;

std::optional<Admitted> Gate::admit(const Objection& objection, Until until) {
  while (!admitted_) {
    if (Clock::now() >= until.time) return std::nullopt;
    std::vector<pollfd> entries = {{listener_.descriptor(), POLLIN, 0}, {until.interrupt, POLLIN, 0}};
    for (const Pending& pending : pending_) entries.push_back({pending.socket.descriptor(), POLLIN, 0});
    const auto wake = pending_.empty() ? until.time : std::min(until.time, pending_.front().deadline);
    ::poll(entries.data(), entries.size(), poll_timeout(wake));
    if (entries[1].revents != 0) return std::nullopt;
    auto entry = entries.begin() + 2;
    for (auto place = pending_.begin(); place != pending_.end() && !admitted_; ++entry) {
      const auto here = place++;
      if (entry->revents != 0 && advance(*here, objection) != State::waiting) pending_.erase(here);
    }
    drop_late();
    if (entries[0].revents != 0) accept_all(objection);
  }
  return std::exchange(admitted_, std::nullopt);
}

/// Accepts waiting connections. A new connection has often sent its hello, or its first message of TLS, already. It is
/// read at once, before a later connection can take its place.
void Gate::accept_all(const Objection& objection) {
  for (int count = 0; count < kBurst && !admitted_; ++count) {
    Socket socket = listener_.accept();
    if (!socket.open()) {
      const int error = errno;
      if (error == EAGAIN || error == EWOULDBLOCK) return;
      const bool full = error == EMFILE || error == ENFILE;
      check(!full || make_room(), "cannot accept a connection: ", std::strerror(error));
      continue;
    }
    if (pending_.size() >= places_) make_room();
    if (wire_ == Wire::tls)
      socket.protect(Tls::listener([token = door_.token](std::string_view text) {
        const auto identity = parse_identity(text);
        return identity ? std::optional(identity->key(token)) : std::nullopt;
      }));
    pending_.push_back({.socket = std::move(socket), .deadline = Clock::now() + limit_, .secured = wire_ != Wire::tls});
    if (advance(pending_.back(), objection) != State::waiting) pending_.pop_back();
  }
}

/// Drops the oldest connection that has sent nothing, or the oldest of all if each has said who it is.
bool Gate::make_room() {
  if (pending_.empty()) return false;
  const auto silent = std::ranges::find_if(pending_, &Pending::silent);
  drop(silent == pending_.end() ? pending_.begin() : silent, "did not prove itself before others needed its place");
  return true;
}

void Gate::drop_late() {
  const auto now = Clock::now();
  while (!pending_.empty() && pending_.front().deadline <= now) drop(pending_.begin(), "did not prove itself in time");
}

void Gate::drop(Place place, const std::string& why) {
  refuse(*place, why);
  place->socket.reset_when_closed();
  pending_.erase(place);
}

Gate::State Gate::refuse(const Pending& pending, const std::string& why) {
  note(strangers_, join({pending.socket.remote().host, " ", why}));
  return State::refused;
}

/// Reads what has arrived, and answers it.
Gate::State Gate::advance(Pending& pending, const Objection& objection) {
  if (pending.secured) return read_and_answer(pending, objection);
  try {
    pending.secured = pending.socket.shake_hands();
  } catch (const Error& error) {
    return refuse(pending, error.what());
  }
  return pending.secured ? read_and_answer(pending, objection) : State::waiting;
}

Gate::State Gate::read_and_answer(Pending& pending, const Objection& objection) {
  while (true) {
    const Bytes awaited = pending.challenged ? writable(pending.proof) : writable(pending.hello);
    const iovec part = {awaited.data() + pending.got, awaited.size() - pending.got};
    const Moved moved = pending.socket.read({&part, 1});
    if (!moved.ended.empty())
      return refuse(pending, pending.challenged && wire_ != Wire::tls
                                 ? "left at the proof of the job token: it may hold another token"
                                 : moved.ended);
    pending.got += moved.bytes;
    if (pending.got < awaited.size()) {
      if (moved.bytes == 0) return State::waiting;
      continue;
    }
    pending.got = 0;
    const State state = pending.challenged ? answer_proof(pending, objection) : answer_hello(pending);
    if (state != State::waiting) return state;
  }
}

Gate::State Gate::answer_hello(Pending& pending) {
  const Hello& hello = pending.hello;
  if (is_tls(bytes_of(hello))) {
    write_now(pending.socket, kOtherWire);
    return refuse(pending, join({"speaks TLS, this rank has --wire ", wire_}));
  }
  if (hello.magic != kHelloMagic) return refuse(pending, "did not answer as a tern rank");
  pending.challenge = {kHelloMagic, kProtocolVersion, 0, random_bytes(), {}};
  pending.challenge.proof = server_proof(door_.token, hello, pending.challenge);
  if (!write_now(pending.socket, bytes_of(pending.challenge))) return refuse(pending, "did not take the answer");
  if (hello.version != kProtocolVersion)
    return refuse(pending, join({"speaks version ", hello.version, " of the protocol, expected ", kProtocolVersion}));
  pending.challenged = true;
  return State::waiting;
}

Gate::State Gate::answer_proof(Pending& pending, const Objection& objection) {
  const Hello& hello = pending.hello;
  if (!is_same(pending.proof, client_proof(door_.token, hello, pending.challenge)))
    return refuse(pending, join({"claims to be rank ", hello.rank, " with another job token"}));
  if (wire_ == Wire::tls) {
    const Identity meant = {hello.epoch, hello.rank, hello.listener};
    if (const auto& said = pending.socket.tls()->identity(); said != meant.text())
      return refuse(pending, join({"says '", printable(said), "' in TLS, expected '", meant.text(), "'"}));
  }
  std::string why = objection(hello);
  if (hello.listener != door_.rank) why = join({"calls rank ", hello.listener, ", found rank ", door_.rank});
  if (hello.wire != wire_) why = join({"has --wire ", hello.wire, ", rank ", door_.rank, " has --wire ", wire_});
  if (!why.empty()) {
    why = join({"rank ", hello.rank, " (", host_of(hello), ", process ", hello.process, ") ", why});
    write_verdict(pending.socket, why);
    note(members_, std::move(why));
    return State::refused;
  }
  if (!write_verdict(pending.socket, "")) return refuse(pending, "went away");
  admitted_ = Admitted{{std::move(pending.socket), seal_of(door_.token, hello, pending.challenge, false),
                        seal_of(door_.token, hello, pending.challenge, true)},
                       hello};
  return State::admitted;
}

/// Keeps only the first reasons, because strangers can cause new ones without end.
void Gate::note(std::vector<Refusal>& refusals, std::string why) {
  const auto known = std::ranges::find(refusals, why, &Refusal::why);
  if (known != refusals.end())
    ++known->times;
  else if (refusals.size() < kMostReasons)
    refusals.push_back({std::move(why), 1});
}

std::string Gate::refusals() const {
  std::string text;
  for (const auto* each : {&members_, &strangers_})
    for (const Refusal& refusal : *each) {
      text += (text.empty() ? "" : "; ") + refusal.why;
      if (refusal.times > 1) text += join({" (", refusal.times, " times)"});
    }
  return text;
}

}  // namespace tern::detail
