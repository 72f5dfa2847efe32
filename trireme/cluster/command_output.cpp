#include "trireme/cluster/command_output.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "trireme/base/error.hpp"
#include "trireme/cluster/child_process.hpp"

namespace trireme::cluster {
namespace {

// A file, which needs nobody who writes while another reads.
UniqueFd text_file(const std::string& text) {
  UniqueFd file(memfd_create("input", MFD_CLOEXEC));
  if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      lseek(file.get(), 0, SEEK_SET) != 0) {
    fail(ErrorKind::failed, "cannot make a file in memory: {}", std::strerror(errno));
  }
  return file;
}

}  // namespace

std::string command_output(const std::vector<std::string>& command, const std::string& input) {
  if (find_program(command.front()).empty()) fail(ErrorKind::unavailable, "{} is not in PATH", command.front());
  const UniqueFd text = text_file(input);
  PipeEnds out = make_pipe();
  ChildProcess process({.command = command, .in = text.get(), .out = out.write.get(), .err = STDERR_FILENO});
  out.write.reset();
  std::string said;
  std::array<char, 4096> chunk{};
  for (ssize_t count = 0; (count = read(out.read.get(), chunk.data(), chunk.size())) > 0;) {
    said.append(chunk.data(), count);
  }
  if (const Ending ending = process.wait(); !ending.is_success()) {
    fail(ErrorKind::failed, "{} {}", command.front(), ending_text(ending));
  }
  return said;
}

}  // namespace trireme::cluster
