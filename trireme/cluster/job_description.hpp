// The tasks of a job, made by the launcher's front end, executed by the Supervisor and, on each host, by run_task().
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace trireme::cluster {

inline constexpr const char* kWorkerRole = "worker";
inline constexpr const char* kServerRole = "ps";

struct Task {
  std::string role = kWorkerRole;
  int index = 0;  // within its role; a worker's is its rank
  std::string host = {};
  std::vector<int> processors = {};                     // OS indices of allowed logical processors; empty: inherited
  std::vector<std::string> command = {};                // program and arguments
  std::map<std::string, std::string> environment = {};  // added to, and overriding, what it inherits
  std::string address = {};                             // where others reach it: "10.0.0.7:2220"; empty: not needed
};

// As sent to its runner, which does not need the address.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Task, role, index, host, processors, command, environment)

struct JobDescription {
  std::vector<Task> tasks;
  bool survives_lost_workers = false;  // while one is left; a job never survives the loss of other tasks
  int least_workers = 0;               // left, of a job whose workers follow a loss together; 0: they do not
  bool needs_first_worker = false;     // the job ends if the first worker is lost: it keeps the results of all

  bool has_only_workers() const;
  std::string name(int task) const;    // "rank 2"; with other roles "worker 2", "ps 0"
  std::string prefix(int task) const;  // of output lines: "[2] "; with other roles "[worker 2] "
};

// Puts all addresses into every task's environment; does nothing if tasks do not connect by address.
void tell_addresses(JobDescription& job);
void set_port(Task& task, int port);  // claimed instead of the expected one

// "rank 2", "ranks 1, 2 and 4", "worker 0 and ps 1". `tasks` must not be empty.
std::string names(const JobDescription& job, const std::vector<int>& tasks);
// With hosts: "ranks 1, 2 and 4 on a, b".
std::string names_with_hosts(const JobDescription& job, const std::vector<int>& tasks);

std::string range_text(const std::vector<int>& numbers);  // "0-3,8" for 0, 1, 2, 3, 8

// Tasks of this host: "4 workers on host: rank 0 on processors 0-3, rank 1 on processors 4-7, ...".
std::string describe(const JobDescription& job, const std::string& host);

}  // namespace trireme::cluster
