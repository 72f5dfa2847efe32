#include "trireme/cluster/runner_link.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>

#include "trireme/cluster/channel.hpp"
#include "trireme/cluster/environment.hpp"

namespace trireme::cluster {

std::string link_value(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISSOCK(status.st_mode)) return "";
  return fmt::format("{}:{}", descriptor, status.st_ino);
}

int runner_link() {
  const std::string link = environment_variable(kLinkVariable);
  const int descriptor = std::atoi(link.c_str());
  return link.empty() || link_value(descriptor) != link ? -1 : descriptor;
}

bool tell_runner(const nlohmann::json& message) {
  static std::mutex mutex;  // messages of several threads must not mix
  const int descriptor = runner_link();
  if (descriptor < 0) return false;
  const std::lock_guard lock(mutex);
  const std::string frame = to_frame(message);
  for (std::size_t sent = 0; sent < frame.size();) {
    const ssize_t count = send(descriptor, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (count > 0) sent += count;
    if (count >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return false;
    pollfd polled{descriptor, POLLOUT, 0};  // it does not block where somebody reads it (LaunchedTeams)
    poll(&polled, 1, -1);
  }
  return true;
}

}  // namespace trireme::cluster
