#include "tern/dist/comm/tcp/keys.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <memory>

#include "tern/core/error.h"

namespace tern::detail {
namespace {

unsigned char* octets(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* octets(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

template <auto free>
struct Free {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};

}  // namespace

Digest hmac(const JobToken& token, ConstBytes text) {
  Digest digest;
  unsigned length = digest.size();
  const void* made = ::HMAC(::EVP_sha256(), token.data(), static_cast<int>(token.size()), octets(text.data()),
                            text.size(), octets(digest.data()), &length);
  check(made != nullptr && length == digest.size(), "OpenSSL: HMAC-SHA256 failed");
  return digest;
}

bool is_same(ConstBytes a, ConstBytes b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Digest random_bytes() {
  Digest bytes;
  check(::RAND_bytes(octets(bytes.data()), static_cast<int>(bytes.size())) == 1, "OpenSSL: no random bytes");
  return bytes;
}

Digest derive_key(const JobToken& token, ConstBytes salt, std::string_view purpose) {
  const std::unique_ptr<EVP_KDF, Free<::EVP_KDF_free>> hkdf(::EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  const std::unique_ptr<EVP_KDF_CTX, Free<::EVP_KDF_CTX_free>> context(::EVP_KDF_CTX_new(hkdf.get()));
  char hash[] = "SHA256";
  const auto bytes = [](const char* name, const void* data, size_t size) {
    return ::OSSL_PARAM_construct_octet_string(name, const_cast<void*>(data), size);
  };
  const OSSL_PARAM parameters[] = {
      ::OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, hash, 0),
      bytes(OSSL_KDF_PARAM_KEY, token.data(), token.size()), bytes(OSSL_KDF_PARAM_SALT, salt.data(), salt.size()),
      bytes(OSSL_KDF_PARAM_INFO, purpose.data(), purpose.size()), ::OSSL_PARAM_construct_end()};
  Digest key;
  check(context != nullptr && ::EVP_KDF_derive(context.get(), octets(key.data()), key.size(), parameters) == 1,
        "OpenSSL: HKDF-SHA256 failed");
  return key;
}

}  // namespace tern::detail
