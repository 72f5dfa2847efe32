#include "trireme/base/write_all.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trireme/base/error.hpp"

namespace trireme {

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes = bytes.subspan(count);
  }
  return true;
}

void append_whole(int descriptor, std::span<const std::byte> bytes, const std::string& path) {
  const off_t before = lseek(descriptor, 0, SEEK_END);  // -1: of a pipe
  if (write_all(descriptor, bytes)) return;
  std::string why = std::strerror(errno);
  if (before >= 0 && ftruncate(descriptor, before) != 0) why += ", and its end is not whole";
  fail(ErrorKind::failed, "cannot write '{}': {}", path, why);
}

}  // namespace trireme
