// An archive of files in memory, in the form that every `tar` reads (POSIX ustar). Used to bring the program to hosts:
// their tar unpacks it.
#pragma once

#include <string>

namespace trireme::cluster {

class TarArchive {
 public:
  // The name has at most 100 characters; folders in it are made by the tar that unpacks. Owner and times are left out:
  // the same files make the same archive.
  void add(const std::string& name, const std::string& content, bool is_executable);
  // The whole of it, with its end.
  std::string bytes() const;

 private:
  std::string bytes_;
};

}  // namespace trireme::cluster
