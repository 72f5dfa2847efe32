// An in-memory archive in POSIX ustar format. Used to send the program to hosts, whose `tar` unpacks it.
#pragma once

#include <string>

namespace trireme::cluster {

class TarArchive {
 public:
  // Names have at most 100 characters. Owner and times are omitted, so equal files give equal archives.
  void add(const std::string& name, const std::string& content, bool is_executable);
  std::string bytes() const;  // complete, with end marker

 private:
  std::string bytes_;
};

}  // namespace trireme::cluster
