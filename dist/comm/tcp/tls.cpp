#include "tern/dist/comm/tcp/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "tern/core/error.h"

namespace tern::detail {
namespace {

/// A session of TLS 1.3 whose secret is the key; null if OpenSSL refuses. It never expires, because the machine's clock
/// may be set forward during the handshake.
SSL_SESSION* session_of(SSL* ssl, const Digest& key) {
  constexpr long kForever = std::numeric_limits<long>::max();
  constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
  SSL_SESSION* const session = ::SSL_SESSION_new();
  if (session != nullptr &&
      ::SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.data()), key.size()) == 1 &&
      ::SSL_SESSION_set_cipher(session, ::SSL_CIPHER_find(ssl, kAes128GcmSha256)) == 1 &&
      ::SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1 &&
      ::SSL_SESSION_set_timeout(session, kForever) == 1)
    return session;
  ::SSL_SESSION_free(session);
  return nullptr;
}

/// What the other end did, from OpenSSL's first error.
std::string cause_of(unsigned long error, bool open) {
  const int reason = ERR_GET_REASON(error);
  const char* const text = ::ERR_reason_error_string(error);
  const std::string words = text == nullptr ? "no reason given" : text;
  const bool told = reason >= SSL_AD_REASON_OFFSET;  // by an alert
  if (open) return (told ? "found bytes from here" : "sent bytes") + (" that were changed on the way: " + words);
  constexpr int kOtherKey[] = {SSL_R_BINDER_DOES_NOT_VERIFY, SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER,
                               SSL_R_TLSV1_ALERT_DECRYPT_ERROR};
  if (std::ranges::find(kOtherKey, reason) != std::end(kOtherKey)) return "holds another job token";
  if (reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION) return "has another --wire than tls";
  return "does not speak TLS 1.3 as a tern rank (--wire tls): " + words;
}

}  // namespace

struct Tls::Hooks {
  static Tls& tls(const SSL* ssl) { return *static_cast<Tls*>(SSL_get_app_data(ssl)); }

  static int give_key(SSL* ssl, const EVP_MD* /*hash*/, const unsigned char** identity, size_t* length,
                      SSL_SESSION** session) noexcept {
    const Tls& self = tls(ssl);
    *identity = reinterpret_cast<const unsigned char*>(self.identity_.data());
    *length = self.identity_.size();
    *session = session_of(ssl, *self.key_);
    return *session != nullptr;
  }
  static int find_key(SSL* ssl, const unsigned char* identity, size_t length, SSL_SESSION** session) noexcept try {
    Tls& self = tls(ssl);
    self.identity_.assign(reinterpret_cast<const char*>(identity), length);
    const auto key = self.find_(self.identity_);
    *session = key ? session_of(ssl, *key) : nullptr;
    return !key || *session != nullptr;
  } catch (...) {
    return 0;
  }

  /// OpenSSL asks for a record's header, and then for its body. With the body, this reads the next header.
  static int read(BIO* bio, char* to, int length) noexcept {
    Tls& self = *static_cast<Tls*>(::BIO_get_data(bio));
    ::BIO_clear_retry_flags(bio);
    const Bytes room = std::as_writable_bytes(std::span(to, static_cast<size_t>(length)));
    size_t count = std::min(self.in_ahead_, room.size());
    std::copy_n(self.ahead_.begin(), count, room.begin());
    self.in_ahead_ -= count;
    std::copy_n(self.ahead_.begin() + static_cast<std::ptrdiff_t>(count), self.in_ahead_, self.ahead_.begin());
    if (count == 0 && self.source_ != nullptr) {
      const size_t came = (*self.source_)(room, self.ahead_);
      count = std::min(came, room.size());
      self.in_ahead_ = came - count;
    }
    if (count > 0) return static_cast<int>(count);
    BIO_set_retry_read(bio);
    return -1;
  }
  static int write(BIO* bio, const char* from, int length) noexcept try {
    Tls& self = *static_cast<Tls*>(::BIO_get_data(bio));
    const ConstBytes bytes = std::as_bytes(std::span(from, static_cast<size_t>(length)));
    self.out_.insert(self.out_.end(), bytes.begin(), bytes.end());
    return length;
  } catch (...) {
    return -1;
  }
  static long control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }
  static int create(BIO* bio) {
    ::BIO_set_init(bio, 1);
    return 1;
  }

  static BIO* make_bio(Tls& tls) {
    static BIO_METHOD* const method = [] {
      BIO_METHOD* const made = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tern");
      check(made != nullptr && ::BIO_meth_set_read(made, read) == 1 && ::BIO_meth_set_write(made, write) == 1 &&
                ::BIO_meth_set_ctrl(made, control) == 1 && ::BIO_meth_set_create(made, create) == 1,
            "OpenSSL: no BIO");
      return made;
    }();
    BIO* const bio = ::BIO_new(method);
    check(bio != nullptr, "OpenSSL: no BIO");
    ::BIO_set_data(bio, &tls);
    return bio;
  }

  static SSL_CTX* context() {
    static SSL_CTX* const shared = [] {
      SSL_CTX* const made = ::SSL_CTX_new(::TLS_method());
      check(made != nullptr && SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) == 1 &&
                SSL_CTX_set_max_proto_version(made, TLS1_3_VERSION) == 1 &&
                ::SSL_CTX_set_ciphersuites(made, "TLS_AES_128_GCM_SHA256") == 1 &&
                ::SSL_CTX_set_num_tickets(made, 0) == 1,
            "OpenSSL: no TLS 1.3");
      SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
      ::SSL_CTX_set_psk_use_session_callback(made, give_key);
      ::SSL_CTX_set_psk_find_session_callback(made, find_key);
      return made;
    }();
    return shared;
  }

  static void attach(Tls& tls) {
    tls.ssl_.reset(::SSL_new(context()));
    check(tls.ssl_ != nullptr && SSL_set_app_data(tls.ssl_.get(), &tls) == 1, "OpenSSL: no connection");
    BIO* const bio = make_bio(tls);
    ::SSL_set_bio(tls.ssl_.get(), bio, bio);
  }
};

void Tls::Free::operator()(SSL* ssl) const { ::SSL_free(ssl); }

Tls::~Tls() = default;

std::unique_ptr<Tls> Tls::caller(std::string identity, const Digest& key) {
  std::unique_ptr<Tls> tls(new Tls);
  tls->identity_ = std::move(identity);
  tls->key_ = key;
  Hooks::attach(*tls);
  ::SSL_set_verify(tls->ssl_.get(), SSL_VERIFY_PEER, nullptr);  // no certificate has a trusted issuer
  ::SSL_set_connect_state(tls->ssl_.get());
  return tls;
}

std::unique_ptr<Tls> Tls::listener(FindKey find) {
  std::unique_ptr<Tls> tls(new Tls);
  tls->find_ = std::move(find);
  Hooks::attach(*tls);
  ::SSL_set_accept_state(tls->ssl_.get());
  return tls;
}

/// Lets OpenSSL use a source during one call.
class Tls::Lent {
 public:
  Lent(const Source*& place, const Source& source) : place_(place) { place_ = &source; }
  ~Lent() { place_ = nullptr; }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  const Source*& place_;
};

bool Tls::shake_hands(const Source& source) {
  prepare();
  const Lent lent(source_, source);
  const int result = ::SSL_do_handshake(ssl_.get());
  if (result != 1) {
    expect_wait(result);
    return false;
  }
  if (::SSL_session_reused(ssl_.get()) != 1) {
    failure_ = "does not prove that it holds the job token";
    throw TlsError(failure_);
  }
  return open_ = true;
}

void Tls::prepare() {
  if (!failure_.empty()) throw TlsError(failure_);
  ::ERR_clear_error();
}

void Tls::expect_wait(int result) {
  const int error = ::SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ) return;
  const unsigned long cause = ::ERR_peek_error();
  failure_ = error == SSL_ERROR_ZERO_RETURN ? "closed its connection" : cause_of(cause, open_);
  // OpenSSL itself answers nothing to a caller without TLS.
  if (!open_ && out_.empty() && ERR_GET_LIB(cause) == ERR_LIB_SSL &&
      ERR_GET_REASON(cause) == SSL_R_WRONG_VERSION_NUMBER)
    out_.assign(kOtherWire.begin(), kOtherWire.end());
  throw TlsError(failure_);
}

bool Tls::holds_bytes() const { return ::SSL_pending(ssl_.get()) > 0; }

size_t Tls::write(ConstBytes bytes) {
  bytes = bytes.first(std::min(bytes.size(), kMostAtOnce));
  if (bytes.empty()) return 0;
  prepare();
  if (written_ >= kBytesPerKey) {
    check(::SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1, "OpenSSL: no key update");
    written_ = 0;
  }
  size_t count = 0;
  if (const int result = ::SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &count); result != 1)
    expect_wait(result);
  written_ += count;
  return count;
}

size_t Tls::read(Bytes bytes, const Source& source) {
  prepare();
  const Lent lent(source_, source);
  bytes = bytes.first(std::min(bytes.size(), kMostAtOnce));
  size_t done = 0;
  while (done < bytes.size()) {
    size_t count = 0;
    const int result = ::SSL_read_ex(ssl_.get(), bytes.data() + done, bytes.size() - done, &count);
    if (result != 1) {
      expect_wait(result);
      break;
    }
    done += count;
  }
  return done;
}

void Tls::left(size_t bytes) {
  out_begin_ += bytes;
  if (out_begin_ < out_.size()) return;
  out_.clear();
  out_begin_ = 0;
}

}  // namespace tern::detail
