#include "trireme/cluster/launcher_link.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>

#include "trireme/cluster/channel.hpp"

namespace trireme::cluster {

std::string link_value(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISSOCK(status.st_mode)) return "";
  return fmt::format("{}:{}", descriptor, status.st_ino);
}

std::optional<LauncherLink> LauncherLink::from_environment() {
  const char* told = std::getenv(kLinkVariable);
  if (told == nullptr) return std::nullopt;
  const int descriptor = std::atoi(told);
  if (link_value(descriptor) != told) return std::nullopt;
  return LauncherLink(descriptor);
}

bool LauncherLink::report_error(const std::string& text, int exit_code) const {
  const std::string frame = to_frame({{"type", "error"}, {"text", text}, {"code", exit_code}});
  return send(descriptor_, frame.data(), frame.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(frame.size());
}

}  // namespace trireme::cluster
