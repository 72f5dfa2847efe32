#include "trireme/comm/host.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace trireme::comm {
namespace {

std::string first_line(const char* path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

std::string link_target(const char* path) {
  std::array<char, 256> text{};
  const ssize_t length = readlink(path, text.data(), text.size());
  return length < 0 ? "" : std::string(text.data(), length);
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string node_key() {
  return fmt::format("{} {} {}", host_name(), first_line("/proc/sys/kernel/random/boot_id"),
                     link_target("/proc/self/ns/pid"));
}

}  // namespace trireme::comm
