// Ensures that a job leaves nothing behind: its processes carry the job's id in their environment, and its files are in
// one private folder. Used by the Supervisor, and by a guard process that cleans up if the supervisor is killed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/cluster/child_process.hpp"

namespace trireme::cluster {

// The job's private folder on this machine, which need not exist; in memory if possible, for shared segments.
std::string job_folder(const std::string& job_id);

class Guard {
 public:
  // `program` is the `trireme` binary, which runs the guard. The folder is made once the guard watches.
  Guard(const std::string& program, const std::string& job_id);
  ~Guard();  // ends the job's processes, removes its folder, and releases the guard
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  const std::string& folder() const { return folder_; }
  // Readable once the guard has ended.
  int poll_descriptor() const { return given_up_ ? -1 : process_->poll_descriptor(); }
  std::string replace_if_ended();  // returns what to report; empty: it still runs

 private:
  void start();

  std::string program_, job_id_, folder_;
  UniqueFd lifeline_;  // open while this process lives
  std::optional<ChildProcess> process_;
  int replaced_ = 0;
  bool given_up_ = false;
};

// Replaces this process, which carries the job's id, by the command; Error(failed) if the job is over on this machine.
[[noreturn]] void become_part_of_job(const std::string& job_id, const std::vector<std::string>& command);

// The guard's main: waits for the end of standard input, then cleans up.
void run_guard(const std::string& job_id, const std::string& folder);

}  // namespace trireme::cluster
