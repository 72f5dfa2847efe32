#include "trireme/cluster/secret.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "trireme/base/error.hpp"
#include "trireme/base/unique_fd.hpp"

namespace trireme::cluster {
namespace {

constexpr std::size_t kLeastCharacters = 16, kMostCharacters = 4096;

}  // namespace

std::string make_secret() {
  std::array<unsigned char, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != std::ssize(bytes)) {
    fail(ErrorKind::failed, "cannot get random numbers from the system: {}", std::strerror(errno));
  }
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

void check_secret(const std::string& secret, const std::string& source) {
  if (secret.size() < kLeastCharacters) {
    bad_input("{}: a secret of {} characters can be guessed; it needs at least {}", source, secret.size(),
              kLeastCharacters);
  }
  const bool is_printable = std::ranges::all_of(secret, [](char c) { return c > ' ' && c <= '~'; });
  if (!is_printable || secret.size() > kMostCharacters) {
    bad_input("{}: a secret is one line of at most {} printable characters, without spaces", source, kMostCharacters);
  }
}

std::string read_secret_file(const std::string& path) {
  const std::string source = fmt::format("--secret-file {}", path);
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) bad_input("{}: cannot read this file: {}", source, std::strerror(errno));
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) bad_input("{}: not a regular file", source);
  if (const unsigned others = status.st_mode & 0077U; others != 0) {
    bad_input("{}: users other than its owner can read or change it (mode {:04o}); run chmod 600 {}", source,
              status.st_mode & 07777U, path);
  }
  std::string text(kMostCharacters + 2, '\0');
  const ssize_t count = read(file.get(), text.data(), text.size());
  text.resize(std::max<ssize_t>(count, 0));
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  check_secret(text, source);
  return text;
}

}  // namespace trireme::cluster
