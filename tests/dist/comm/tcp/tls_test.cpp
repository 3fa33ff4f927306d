#include "tern/dist/comm/tcp/tls.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <map>
#include <memory>
#include <numeric>

#include "tests/support/message_of.h"

namespace {

std::atomic<int64_t> seconds_per_read = 0;

/// While it exists, the clock is set further each time that this program reads it.
struct SetClock {
  explicit SetClock(int64_t seconds) { seconds_per_read = seconds; }
  ~SetClock() { seconds_per_read = 0; }
};

void read_clock(timespec& now) {
  static std::atomic<int64_t> ahead = 0;
  ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  now.tv_sec += ahead += seconds_per_read;
}

}  // namespace

extern "C" {

time_t time(time_t* result) noexcept {
  timespec now = {};
  read_clock(now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(timeval* result, void* /*zone*/) noexcept {
  timespec now = {};
  read_clock(now);
  *result = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

}  // extern "C"

namespace tern::detail {
namespace {

Digest key_of(int number) {
  Digest key = {};
  key[0] = static_cast<std::byte>(number);
  return key;
}

const std::string kText = "a gradient";
const ConstBytes kPlain = std::as_bytes(std::span(kText));

/// Both ends of a connection, and a wire between them that a test can read.
struct Ends {
  std::unique_ptr<Tls> caller, listener;
  std::vector<std::byte> wire = {};  // all bytes that passed

  Ends(const Digest& callers, const Digest& listeners)
      : caller(Tls::caller("rank 1", callers)), listener(Tls::listener([=](std::string_view identity) {
          return identity == "rank 1" ? std::optional(listeners) : std::nullopt;
        })) {}

  /// What leaves `from`.
  Tls::Source after(Tls& from) {
    return [&](Bytes room, Bytes more) { return take(from, room) + take(from, more); };
  }
  size_t take(Tls& from, Bytes room) {
    const ConstBytes leaving = from.leaving();
    const size_t count = std::min(leaving.size(), room.size());
    std::copy_n(leaving.begin(), count, room.begin());
    wire.insert(wire.end(), leaving.begin(), leaving.begin() + static_cast<std::ptrdiff_t>(count));
    from.left(count);
    return count;
  }
  void shake_hands() {
    bool caller_ready = false, listener_ready = false;
    for (int i = 0; i < 10 && !(caller_ready && listener_ready); ++i) {
      caller_ready = caller_ready || caller->shake_hands(after(*listener));
      listener_ready = listener_ready || listener->shake_hands(after(*caller));
    }
    ASSERT_TRUE(caller_ready && listener_ready);
  }
};

TEST(Tls, AClockThatIsSetDuringTheHandshakeHarmsNothing) {
  for (const int64_t jump : {-10'000, 10'000}) {
    const SetClock often(jump);
    Ends ends(key_of(1), key_of(1));
    ends.shake_hands();
    EXPECT_EQ(ends.listener->identity(), "rank 1");
  }
}

TEST(Tls, BothEndsReadWhatTheOtherWrites) {
  Ends ends(key_of(1), key_of(1));
  ends.shake_hands();
  EXPECT_EQ(ends.listener->identity(), "rank 1");
  std::vector<std::byte> got(100);
  for (const auto& [from, to] :
       {std::pair(ends.caller.get(), ends.listener.get()), std::pair(ends.listener.get(), ends.caller.get())}) {
    EXPECT_EQ(to->read(got, ends.after(*from)), 0u) << "nothing has come yet";
    EXPECT_EQ(from->write(kPlain), kPlain.size());
    EXPECT_EQ(to->read(got, ends.after(*from)), kPlain.size());
    EXPECT_TRUE(std::equal(kPlain.begin(), kPlain.end(), got.begin()));
    EXPECT_EQ(std::ranges::search(ends.wire, kPlain).begin(), ends.wire.end());
  }
}

TEST(Tls, SendsWithNewKeysInTime) {
  Ends ends(key_of(1), key_of(1));
  ends.shake_hands();
  std::vector<std::byte> sent(Tls::kMostAtOnce), got(sent.size());
  uint64_t moved = 0;
  std::map<size_t, int> sizes;  // of what leaves for one write
  for (uint32_t round = 0; moved <= Tls::kBytesPerKey + sent.size(); ++round) {
    sent[round % sent.size()] ^= std::byte{1};
    ASSERT_EQ(ends.caller->write(sent), sent.size());
    ++sizes[ends.caller->leaving().size()];
    ASSERT_EQ(ends.listener->read(got, ends.after(*ends.caller)), sent.size());
    ends.wire.clear();
    ASSERT_EQ(sent, got);
    moved += sent.size();
  }
  ASSERT_EQ(sizes.size(), 2u) << "one write has a record more, which announces the new keys";
  EXPECT_EQ(sizes.rbegin()->second, 1);
}

TEST(Tls, AnotherKeyIsRefusedByBothEnds) {
  Ends ends(key_of(1), key_of(2));
  const auto from_caller = ends.after(*ends.caller), from_listener = ends.after(*ends.listener);
  EXPECT_FALSE(ends.caller->shake_hands(from_listener));
  EXPECT_EQ(message_of<TlsError>([&] { ends.listener->shake_hands(from_caller); }), "holds another job token");
  EXPECT_EQ(message_of<TlsError>([&] { ends.caller->shake_hands(from_listener); }), "holds another job token");
}

TEST(Tls, EveryChangedByteIsFound) {
  for (size_t place = 0;; ++place) {
    Ends ends(key_of(1), key_of(1));
    ends.shake_hands();
    ends.caller->write(kPlain);
    if (place == ends.caller->leaving().size()) break;
    size_t passed = 0;
    const auto changed = [&](Bytes room, Bytes /*more*/) {
      const size_t count = ends.take(*ends.caller, room);
      if (place >= passed && place < passed + count) room[place - passed] ^= std::byte{1};
      passed += count;
      return count;
    };
    std::vector<std::byte> got(100);
    size_t count = 0;
    try {
      count = ends.listener->read(got, changed);  // 0: the record seems longer, so that more must come
    } catch (const TlsError&) {
    }
    EXPECT_EQ(count, 0u) << place;
  }
}

/// A listener without the key that offers a certificate of its own, as OpenSSL allows.
class Impostor {
 public:
  Impostor() : context_(::SSL_CTX_new(::TLS_server_method()), ::SSL_CTX_free) {
    const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(EVP_EC_gen("P-256"), ::EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&::X509_free)> certificate(::X509_new(), ::X509_free);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    ::X509_set_pubkey(certificate.get(), key.get());
    ::X509_sign(certificate.get(), key.get(), ::EVP_sha256());
    ::SSL_CTX_use_certificate(context_.get(), certificate.get());
    ::SSL_CTX_use_PrivateKey(context_.get(), key.get());
    ssl_.reset(::SSL_new(context_.get()));
    in_ = ::BIO_new(::BIO_s_mem());
    out_ = ::BIO_new(::BIO_s_mem());
    ::SSL_set_bio(ssl_.get(), in_, out_);
    ::SSL_set_accept_state(ssl_.get());
  }
  /// Answers what the caller has said. Returns the bytes that come to it.
  Tls::Source answer(Tls& caller) {
    const ConstBytes leaving = caller.leaving();
    ::BIO_write(in_, leaving.data(), static_cast<int>(leaving.size()));
    caller.left(leaving.size());
    ::SSL_do_handshake(ssl_.get());
    EXPECT_GT(BIO_pending(out_), 500) << "the certificate was not sent";
    return [this](Bytes room, Bytes /*more*/) {
      return static_cast<size_t>(std::max(0, ::BIO_read(out_, room.data(), static_cast<int>(room.size()))));
    };
  }

 private:
  std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&::SSL_free)> ssl_{nullptr, ::SSL_free};
  BIO *in_ = nullptr, *out_ = nullptr;
};

TEST(Tls, ACallerWithoutAKeyIsRefused) {
  const std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context(::SSL_CTX_new(::TLS_client_method()),
                                                                    ::SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&::SSL_free)> ssl(::SSL_new(context.get()), ::SSL_free);
  BIO* const out = ::BIO_new(::BIO_s_mem());
  ::SSL_set_bio(ssl.get(), ::BIO_new(::BIO_s_mem()), out);
  ::SSL_connect(ssl.get());
  const auto from_stranger = [&](Bytes room, Bytes /*more*/) {
    return static_cast<size_t>(std::max(0, ::BIO_read(out, room.data(), static_cast<int>(room.size()))));
  };
  EXPECT_GT(BIO_pending(out), 100);
  const auto listener = Tls::listener([](std::string_view) { return std::optional(key_of(1)); });
  EXPECT_NE(message_of<TlsError>([&] { listener->shake_hands(from_stranger); }), "");
}

TEST(Tls, ACertificateDoesNotReplaceTheKey) {
  const auto caller = Tls::caller("rank 1", key_of(1));
  EXPECT_FALSE(caller->shake_hands([](Bytes, Bytes) { return size_t{0}; }));
  Impostor impostor;
  const Tls::Source from_impostor = impostor.answer(*caller);
  EXPECT_NE(message_of<TlsError>([&] { caller->shake_hands(from_impostor); }), "");
}

// RFC 5869, test case 1: the first 32 of its 42 bytes.
TEST(Keys, AreThoseOfHkdf) {
  const JobToken token(22, '\x0b');
  std::vector<std::byte> salt(13);
  for (size_t i = 0; i < salt.size(); ++i) salt[i] = static_cast<std::byte>(i);
  const Digest key = derive_key(token, salt, "\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9");
  constexpr int kExpected[] = {0x3c, 0xb2, 0x5f, 0x25, 0xfa, 0xac, 0xd5, 0x7a, 0x90, 0x43, 0x4f,
                               0x64, 0xd0, 0x36, 0x2f, 0x2a, 0x2d, 0x2d, 0x0a, 0x90, 0xcf, 0x1a,
                               0x5a, 0x4c, 0x5d, 0xb0, 0x2d, 0x56, 0xec, 0xc4, 0xc5, 0xbf};
  for (size_t i = 0; i < key.size(); ++i) EXPECT_EQ(std::to_integer<int>(key[i]), kExpected[i]) << i;
}

}  // namespace
}  // namespace tern::detail
