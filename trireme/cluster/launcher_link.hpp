// A worker's word to the launcher that started it: what went wrong, before it ends, so that the launcher can report the
// first error of a job first. Used by main(); a process that no launcher has started has no link.
#pragma once

#include <optional>
#include <string>

namespace trireme::cluster {

// Tells a program the descriptor of its link and, so that a descriptor of the same number that is something else is not
// mistaken for it, the socket's inode: "5:123456".
inline constexpr const char* kLinkVariable = "TRIREME_TASK_LINK";
std::string link_value(int descriptor);

class LauncherLink {
 public:
  static std::optional<LauncherLink> from_environment();

  // With the exit code to come: the process may need a while to end, or never get there. False where the launcher is
  // gone: then the text is the caller's to print.
  [[nodiscard]] bool report_error(const std::string& text, int exit_code) const;

 private:
  explicit LauncherLink(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;  // not closed: it is the process's, like stderr
};

}  // namespace trireme::cluster
