// Who runs where, as data: the tasks of a job with role, index, host, processors, command and environment. Made by the
// launcher's front end, carried out by the Supervisor and, on each task's own host, by run_task().
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
  std::vector<int> processors = {};  // logical processors (OS index) that it may run on; empty: wherever it may now
  std::vector<std::string> command = {};                // program and arguments
  std::map<std::string, std::string> environment = {};  // beside what it inherits; wins over that
  std::string address = {};  // at which the others find it: "10.0.0.7:2220"; empty: they need not
};

// As it travels to its runner, who need not know the address.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Task, role, index, host, processors, command, environment)

struct JobDescription {
  std::vector<Task> tasks;
  bool survives_lost_workers = false;  // as long as one is left; a job never survives the loss of another task
  bool needs_first_worker = false;     // that one excepted: it keeps the results of all

  bool has_only_workers() const;
  std::string name(int task) const;    // "rank 2"; beside other roles "worker 2", "ps 0"
  std::string prefix(int task) const;  // of lines of output: "[2] "; beside other roles "[worker 2] "
};

// Tells every task where all of them meet, by its environment; nothing where they do not meet at addresses.
void tell_addresses(JobDescription& job);
// The agent of its host has claimed another port for it than the one that was expected.
void set_port(Task& task, int port);

// "rank 2", "ranks 1, 2 and 4", "worker 0 and ps 1": the given tasks, not none.
std::string names(const JobDescription& job, const std::vector<int>& tasks);
// The same with their hosts: "ranks 1, 2 and 4 on a, b".
std::string names_with_hosts(const JobDescription& job, const std::vector<int>& tasks);

// "0-3,8" for 0, 1, 2, 3, 8.
std::string range_text(const std::vector<int>& numbers);

// "4 workers on host: rank 0 on processors 0-3, rank 1 on processors 4-7, ...": those of this host.
std::string describe(const JobDescription& job, const std::string& host);

}  // namespace trireme::cluster
