#include "trireme/cluster/cleanup.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "trireme/base/error.hpp"
#include "trireme/cluster/environment.hpp"

namespace trireme::cluster {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::string environment_of(const fs::path& process) {
  std::ifstream file(process / "environ", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A shared segment is fast only where files live in memory.
fs::path folder_for_segments() {
  if (access("/dev/shm", W_OK | X_OK) == 0) return "/dev/shm";
  return fs::temp_directory_path();
}

// MPI's daemon on this host may have been faster.
void make_private_folder(const std::string& folder) {
  struct stat status {};
  if (mkdir(folder.c_str(), S_IRWXU) == 0) return;
  const int reason = errno;
  const bool is_ours =
      reason == EEXIST && lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
  if (!is_ours) {
    fail(ErrorKind::failed, "cannot make the folder {} for what the workers share: {}", folder, std::strerror(reason));
  }
}

void remove_folder(const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

}  // namespace

std::vector<pid_t> marked_processes(const std::string& mark) {
  const std::string entry = fmt::format("{}={}{}", kLaunchVariable, mark, '\0');
  std::vector<pid_t> marked;
  std::error_code ignored;  // processes come and go while we look
  for (fs::directory_iterator it("/proc", ignored), end; it != end; it.increment(ignored)) {
    const std::string name = it->path().filename();
    pid_t pid = 0;
    const auto [last, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || last != name.data() + name.size() || pid == getpid()) continue;
    if (environment_of(it->path()).find(entry) != std::string::npos) marked.push_back(pid);
  }
  return marked;
}

void end_marked_processes(const std::string& mark) {
  const auto deadline = std::chrono::steady_clock::now() + 2s;  // a process in the kernel's hands may not go at once
  for (auto pids = marked_processes(mark); !pids.empty(); pids = marked_processes(mark)) {
    for (const pid_t pid : pids) kill(pid, SIGKILL);
    if (std::chrono::steady_clock::now() > deadline) return;
    std::this_thread::sleep_for(2ms);
  }
}

std::string job_folder(const std::string& mark) { return (folder_for_segments() / mark).string(); }

Guard::Guard(const std::string& program, const std::string& mark)
    : mark_(mark), folder_(job_folder(mark)), lifeline_(make_pipe()) {
  process_.emplace(
      ChildOptions{.command = {program, "launch-guard", mark, folder_}, .in = lifeline_.read.get(), .outlives = true});
  lifeline_.read.reset();
  make_private_folder(folder_);
}

Guard::~Guard() {
  end_marked_processes(mark_);
  remove_folder(folder_);
  lifeline_.write.reset();
  process_->wait();
}

void run_guard(const std::string& mark, const std::string& folder) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
  char nothing = 0;
  while (read(STDIN_FILENO, &nothing, 1) > 0) continue;
  end_marked_processes(mark);
  remove_folder(folder);
}

}  // namespace trireme::cluster
