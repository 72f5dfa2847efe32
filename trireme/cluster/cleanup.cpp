#include "trireme/cluster/cleanup.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/base/parse.hpp"
#include "trireme/cluster/environment.hpp"

namespace trireme::cluster {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Shared segments are fast only if files are in memory.
fs::path folder_for_segments() {
  if (access("/dev/shm", W_OK | X_OK) == 0) return "/dev/shm";
  return fs::temp_directory_path();
}

constexpr int kMostGuards = 5;  // then something keeps killing them

void make_private_folder(const std::string& folder) {
  if (mkdir(folder.c_str(), S_IRWXU) == 0) return;
  fail(ErrorKind::failed, "cannot make the folder {} for what the workers share: {}", folder, std::strerror(errno));
}

void remove_folder(const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

// Processes of the same user on this machine that carry the id, without the calling one.
std::vector<pid_t> processes_of_job(const std::string& job_id) {
  const std::string entry = fmt::format("{}={}{}", kLaunchVariable, job_id, '\0');
  std::vector<pid_t> found;
  std::error_code ignored;  // processes come and go meanwhile
  for (fs::directory_iterator it("/proc", ignored), end; it != end; it.increment(ignored)) {
    const auto pid = parse_number<pid_t>(it->path().filename().native());
    if (!pid || *pid == getpid()) continue;
    if (read_text(it->path() / "environ").find(entry) != std::string::npos) found.push_back(*pid);
  }
  return found;
}

// Kills them until none is left.
void end_processes_of_job(const std::string& job_id) {
  const auto deadline = SteadyClock::now() + 2s;  // a process inside the kernel may take a while
  for (auto pids = processes_of_job(job_id); !pids.empty(); pids = processes_of_job(job_id)) {
    for (const pid_t pid : pids) kill(pid, SIGKILL);
    if (SteadyClock::now() > deadline) return;
    std::this_thread::sleep_for(2ms);
  }
}

// Removes the folder first: processes that saw it carry the id and are found, and no new ones start
// (become_part_of_job()). And again at the end: those found may have recreated it.
void end_job(const std::string& job_id, const std::string& folder) {
  remove_folder(folder);
  end_processes_of_job(job_id);
  remove_folder(folder);
}

}  // namespace

std::string job_folder(const std::string& job_id) { return (folder_for_segments() / job_id).string(); }

Guard::Guard(const std::string& program, const std::string& job_id)
    : program_(program), job_id_(job_id), folder_(job_folder(job_id)) {
  start();
  make_private_folder(folder_);
}

void Guard::start() {
  PipeEnds lifeline = make_pipe();
  ChildProcess next(ChildOptions{
      .command = {program_, "launch-guard", job_id_, folder_}, .in = lifeline.read.get(), .outlives = true});
  process_.emplace(std::move(next));
  lifeline_ = std::move(lifeline.write);
}

std::string Guard::replace_if_ended() {
  const auto ending = process_->try_wait();
  if (!ending || given_up_) return "";
  const std::string what = fmt::format("the guard (pid {}), which cleans up if this process is killed, {}",
                                       process_->pid(), ending_text(*ending));
  given_up_ = ++replaced_ > kMostGuards;
  if (given_up_) return what + "; it will not be replaced again";
  try {
    start();
  } catch (const std::exception& error) {
    given_up_ = true;
    return fmt::format("{}; it cannot be replaced: {}", what, error.what());
  }
  return what + "; it was replaced";
}

Guard::~Guard() {
  end_job(job_id_, folder_);
  lifeline_.reset();
  process_->wait();
}

void become_part_of_job(const std::string& job_id, const std::vector<std::string>& command) {
  if (access(job_folder(job_id).c_str(), X_OK) != 0) fail(ErrorKind::failed, "the job of this process is over");
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words.front(), words.data());
  fail(ErrorKind::failed, "cannot run {}: {}", command.front(), std::strerror(errno));
}

void run_guard(const std::string& job_id, const std::string& folder) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
  char nothing = 0;
  while (read(STDIN_FILENO, &nothing, 1) > 0) continue;
  end_job(job_id, folder);
}

}  // namespace trireme::cluster
