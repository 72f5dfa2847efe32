// A real file system with little room, in memory, for tests of full disks. Seen by this thread and the processes that
// it starts alone, and gone with them. The system has to allow that: root can, and others where user namespaces are
// enabled.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_folder.hpp"

namespace trireme::testkit {

class SmallDisk {
 public:
  explicit SmallDisk(std::int64_t bytes) {
    is_there_ = enter_namespace() && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, size_option(bytes).c_str()) == 0;
  }
  ~SmallDisk() {
    if (is_there_) umount2(folder_.path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool is_there() const { return is_there_; }  // false: skip the test
  std::string operator/(const std::string& name) const { return folder_ / name; }
  const std::filesystem::path& path() const { return folder_.path(); }

  bool resize(std::int64_t bytes) {
    return mount("tmpfs", folder_.path().c_str(), nullptr, MS_REMOUNT, size_option(bytes).c_str()) == 0;
  }
  // A file takes all room but this, in whole pages.
  void fill(std::int64_t bytes_left) {
    struct statvfs status {};
    statvfs(folder_.path().c_str(), &status);
    const auto free = static_cast<std::int64_t>(status.f_bavail * status.f_frsize);
    std::ofstream(folder_ / "other-things") << std::string(free - bytes_left, 'x');
  }

 private:
  static bool enter_namespace() {
    if (unshare(CLONE_NEWNS) == 0) return true;
    const std::string user = std::to_string(getuid()), group = std::to_string(getgid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << user + " " + user + " 1";
    std::ofstream("/proc/self/gid_map") << group + " " + group + " 1";
    return true;
  }
  static std::string size_option(std::int64_t bytes) { return "size=" + std::to_string(bytes); }

  TemporaryFolder folder_;
  bool is_there_ = false;
};

}  // namespace trireme::testkit
