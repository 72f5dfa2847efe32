#include "trireme/comm/grpc/proof.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "trireme/base/error.hpp"

namespace trireme::comm::rpc {
namespace {

void append(std::string& text, std::string_view part) {
  const std::uint64_t length = part.size();
  text.append(reinterpret_cast<const char*>(&length), sizeof length);
  text.append(part);
}

}  // namespace

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  if (getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count)) {
    fail(ErrorKind::failed, "cannot get random numbers from the system: {}", std::strerror(errno));
  }
  return bytes;
}

std::string keyed_hash(std::string_view key, std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) append(text, part);
  std::string hash(kProofBytes, '\0');
  unsigned length = 0;
  const unsigned char* const made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
           text.size(), reinterpret_cast<unsigned char*>(hash.data()), &length);
  if (made == nullptr || length != kProofBytes) fail(ErrorKind::failed, "libcrypto cannot make HMAC-SHA-256");
  return hash;
}

std::string caller_proof(std::string_view secret, std::string_view claim, std::string_view challenge) {
  return keyed_hash(secret, {"trireme caller 1", claim, challenge});
}

std::string answer_proof(std::string_view secret, std::string_view claim, std::string_view challenge) {
  return keyed_hash(secret, {"trireme answer 1", claim, challenge});
}

bool is_equal(std::string_view given, std::string_view expected) {
  return given.size() == expected.size() && CRYPTO_memcmp(given.data(), expected.data(), expected.size()) == 0;
}

}  // namespace trireme::comm::rpc
