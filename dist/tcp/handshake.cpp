#include "tern/dist/tcp/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tern/core/error.h"
#include "tern/dist/peer_error.h"

namespace tern::detail {
namespace {

constexpr uint32_t kMagic = 0x4f4c4548;  // "HELO"
constexpr size_t kMaxPending = 32;

using Digest = std::array<std::byte, 32>;

/// The listener's answer to a Hello.
struct Challenge {
  uint32_t magic;
  uint16_t version;
  uint16_t zero;
  Digest nonce;
  Digest proof;  // over the direction, the hello and the above
};
static_assert(sizeof(Challenge) == 72);

/// The listener's last word: text, or nothing where all is well.
using Verdict = std::array<char, 256>;

template <class T>
ConstBytes bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

Digest hmac(const JobToken& token, std::string_view direction, std::initializer_list<ConstBytes> parts) {
  std::vector<std::byte> text(std::as_bytes(std::span(direction)).begin(), std::as_bytes(std::span(direction)).end());
  for (const ConstBytes part : parts) text.insert(text.end(), part.begin(), part.end());
  Digest digest;
  unsigned length = digest.size();
  const void* made = ::HMAC(::EVP_sha256(), token.data(), static_cast<int>(token.size()),
                            reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                            reinterpret_cast<unsigned char*>(digest.data()), &length);
  check(made != nullptr && length == digest.size(), "OpenSSL: HMAC-SHA256 failed");
  return digest;
}

Digest server_proof(const JobToken& token, const Hello& hello, const Challenge& challenge) {
  return hmac(token, "tern listener", {bytes_of(hello), bytes_of(challenge).first(offsetof(Challenge, proof))});
}
Digest client_proof(const JobToken& token, const Hello& hello, const Challenge& challenge) {
  return hmac(token, "tern caller", {bytes_of(hello), bytes_of(challenge)});
}

bool same(const Digest& a, const Digest& b) { return ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

Digest random_bytes() {
  Digest bytes;
  check(::RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size()) == 1, "OpenSSL: no random bytes");
  return bytes;
}

template <class T>
Bytes writable(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

Hello make_hello(Purpose purpose, uint32_t epoch, int rank, int size, uint16_t port) {
  Hello hello = {kMagic,
                 kProtocolVersion,
                 purpose,
                 0,
                 epoch,
                 static_cast<uint32_t>(rank),
                 static_cast<uint32_t>(size),
                 static_cast<uint32_t>(::getpid()),
                 port,
                 0,
                 {},
                 random_bytes()};
  ::gethostname(hello.host.data(), hello.host.size() - 1);
  return hello;
}

void knock(Socket& socket, const Hello& hello, const JobToken& token, const Address& where,
           Clock::time_point deadline) {
  const auto must = [&](bool holds, const auto&... cause) {
    if (!holds) throw PeerError(join({"rank ", hello.rank, ": ", where, " ", cause...}));
  };
  Challenge challenge = {};
  must(socket.write_all(bytes_of(hello), deadline) && socket.read_all(writable(challenge), deadline),
       "did not answer as a rank of this job");
  must(challenge.magic == kMagic, "is no rank of a job of tern's");
  must(challenge.version == kProtocolVersion, "speaks version ", challenge.version, " of the protocol, rank ",
       hello.rank, " version ", kProtocolVersion);
  must(same(challenge.proof, server_proof(token, hello, challenge)), "holds another job token than rank ", hello.rank);
  Verdict verdict = {};
  must(socket.write_all(bytes_of(client_proof(token, hello, challenge)), deadline) &&
           socket.read_all(writable(verdict), deadline),
       "turned rank ", hello.rank, " away");
  verdict.back() = 0;
  if (verdict.front() != 0) throw PeerError(verdict.data());
}

/// A connection that has not proved itself yet.
struct Gate::Pending {
  Socket socket;
  Clock::time_point deadline;
  Address from = socket.remote();
  bool challenged = false;
  size_t got = 0;  // bytes of what is awaited now
  Hello hello = {};
  Challenge challenge = {};
  Digest proof = {};
  bool done = false, refused = false;
};

Gate::Gate(Listener& listener, uint32_t epoch, int size, const JobToken& token, Clock::duration limit)
    : listener_(listener), epoch_(epoch), size_(size), token_(token), limit_(limit) {}

Gate::~Gate() = default;

std::optional<Admitted> Gate::admit(Clock::time_point deadline) {
  while (Clock::now() < deadline) {
    std::vector<pollfd> entries = {{pending_.size() < kMaxPending ? listener_.descriptor() : -1, POLLIN, 0}};
    for (const Pending& pending : pending_) entries.push_back({pending.socket.descriptor(), POLLIN, 0});
    const auto wake = std::min(deadline, Clock::now() + std::chrono::milliseconds(100));
    ::poll(entries.data(), entries.size(), poll_timeout(wake));
    for (Pending& pending : pending_) {
      if (!advance(pending)) continue;
      Admitted admitted = {std::move(pending.socket), pending.hello};
      std::erase_if(pending_, [](const Pending& p) { return p.refused || !p.socket.open(); });
      return admitted;
    }
    std::erase_if(pending_, [](const Pending& p) { return p.refused; });
    if (entries[0].revents != 0)
      if (Socket socket = listener_.accept(); socket.open())
        pending_.push_back({.socket = std::move(socket), .deadline = Clock::now() + limit_});
  }
  return std::nullopt;
}

/// Takes what has come; true once the peer is admitted.
bool Gate::advance(Pending& pending) {
  const auto refuse = [&](const std::string& why) {
    pending.refused = true;
    refused_ = join({pending.from, " ", why});
    return false;
  };
  const Bytes awaited = pending.challenged ? writable(pending.proof) : writable(pending.hello);
  const iovec part = {awaited.data() + pending.got, awaited.size() - pending.got};
  const Moved moved = pending.socket.read({&part, 1});
  if (!moved.ended.empty())
    return refuse(pending.challenged ? "left at the proof of the job token: does it hold another?" : moved.ended);
  pending.got += moved.bytes;
  if (pending.got < awaited.size())
    return Clock::now() > pending.deadline ? refuse("did not prove itself in time") : false;
  pending.got = 0;
  const auto soon = Clock::now() + std::chrono::milliseconds(100);
  if (!pending.challenged) {
    if (pending.hello.magic != kMagic) return refuse("is no rank of a job of tern's");
    pending.challenge = {kMagic, kProtocolVersion, 0, random_bytes(), {}};
    pending.challenge.proof = server_proof(token_, pending.hello, pending.challenge);
    if (!pending.socket.write_all(bytes_of(pending.challenge), soon)) return refuse("took no answer");
    pending.challenged = true;
    if (pending.hello.version != kProtocolVersion)
      return refuse(join({"speaks version ", pending.hello.version, " of the protocol, expected ", kProtocolVersion}));
    return false;
  }
  if (!same(pending.proof, client_proof(token_, pending.hello, pending.challenge)))
    return refuse(join({"claims to be rank ", pending.hello.rank, " with another job token"}));
  check_fits(pending);
  return pending.socket.write_all(bytes_of(Verdict{}), soon) || refuse("went away");
}

void Gate::check_fits(Pending& pending) {
  pending.hello.host.back() = 0;
  const Hello& hello = pending.hello;
  std::string wrong;
  if (static_cast<int>(hello.size) != size_)
    wrong = join({"is one of ", hello.size, " ranks, rank 0 one of ", size_});
  else if (hello.epoch != epoch_)
    wrong = join({"is in epoch ", hello.epoch, " of the job, rank 0 in epoch ", epoch_});
  else if (hello.rank == 0 || hello.rank >= hello.size)
    wrong = join({"cannot join ", size_, " ranks"});
  if (wrong.empty()) return;
  wrong = join({"rank ", hello.rank, " (", hello.host.data(), ", process ", hello.process, ") ", wrong});
  Verdict verdict = {};
  wrong.copy(verdict.data(), verdict.size() - 1);
  pending.socket.write_all(bytes_of(verdict), Clock::now() + std::chrono::milliseconds(100));
  throw PeerError(wrong);
}

}  // namespace tern::detail
