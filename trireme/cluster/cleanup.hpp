// What makes sure that a job leaves nothing behind. Every process of a job carries the job's id in its environment,
// and all files of a job lie in one private folder: whatever happens, these two are enough to find everything. Used by
// the Supervisor when a job ends, and by the guard: a process beside the supervisor that does the same should the
// supervisor itself be killed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/cluster/child_process.hpp"

namespace trireme::cluster {

// The job's private folder on this machine, which need not exist; in memory where the machine has that, for segments
// that processes share.
std::string job_folder(const std::string& job_id);

class Guard {
 public:
  // The program is the `trireme` binary, which has the guard as a hidden command. The folder is made once the guard
  // watches: there is no moment at which it could be left behind.
  Guard(const std::string& program, const std::string& job_id);
  ~Guard();  // ends the job's processes, removes its folder, and sends the guard home
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  const std::string& folder() const { return folder_; }
  // Readable once it has ended.
  int poll_descriptor() const { return given_up_ ? -1 : process_->poll_descriptor(); }
  // Where it has ended before its time, another takes its place. What to tell about that; empty: it has not.
  std::string replace_if_ended();

 private:
  void start();

  std::string program_, job_id_, folder_;
  UniqueFd lifeline_;  // open for as long as this process lives
  std::optional<ChildProcess> process_;
  int replaced_ = 0;
  bool given_up_ = false;
};

// Turns this process, which carries the job's id, into the command; Error(failed) if the job is over on this
// machine.
[[noreturn]] void become_part_of_job(const std::string& job_id, const std::vector<std::string>& command);

// The body of the guard: waits until standard input ends, then cleans up.
void run_guard(const std::string& job_id, const std::string& folder);

}  // namespace trireme::cluster
