#include "wire_tap.hpp"

#include <dlfcn.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <mutex>

namespace trireme::comm::testkit {
namespace {

std::atomic<bool> is_on = false;

struct Tape {
  std::mutex mutex;
  std::map<int, std::string> sent;
};
Tape& tape() {
  static auto* const only = new Tape;  // gRPC's threads may send to the very end
  return *only;
}

void record(int descriptor, const msghdr& message, ssize_t count) {
  const std::lock_guard lock(tape().mutex);
  auto left = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < message.msg_iovlen && left > 0; ++i) {
    const std::size_t taken = std::min(left, message.msg_iov[i].iov_len);
    tape().sent[descriptor].append(static_cast<const char*>(message.msg_iov[i].iov_base), taken);
    left -= taken;
  }
}

}  // namespace

void start_wire_tap() { is_on = true; }

std::map<int, std::string> wire_tap() {
  const std::lock_guard lock(tape().mutex);
  return tape().sent;
}

}  // namespace trireme::comm::testkit

extern "C" ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
  static const auto real = reinterpret_cast<ssize_t (*)(int, const msghdr*, int)>(dlsym(RTLD_NEXT, "sendmsg"));
  const ssize_t count = real(descriptor, message, flags);
  if (count > 0 && trireme::comm::testkit::is_on) trireme::comm::testkit::record(descriptor, *message, count);
  return count;
}
