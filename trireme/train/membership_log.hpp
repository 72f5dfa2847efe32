// Which workers have made which steps of an elastic run, and how it ended: JSON lines. Written by the first worker's
// Trainer, read for a replay (replay.hpp).
//   {"membership":1,"first_step":0,"nodes":[0,0,1,1],"threads":[2,2,2,2],"options":{...}}    of the launched workers
//   {"step":17,"epoch":2,"workers":[0,2,3]}     from this step on, counted from 0, these contribute
//   {"end":40,"hash":"b1d2..."}                 steps, and the first worker's values
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "trireme/base/json.hpp"
#include "trireme/comm/team.hpp"

namespace trireme::train {

struct TrainingConfig;

struct MembershipHeader {
  std::int64_t first_step = 0;      // above 0: the run was resumed
  std::vector<int> nodes, threads;  // by rank
  Json options;
};

struct Membership : MembershipHeader {
  struct Change {
    std::uint64_t step = 0;
    comm::Team team;
  };
  std::vector<Change> changes;
  std::int64_t steps = 0;
  std::uint64_t hash = 0;
};

class MembershipLog {
 public:
  // Error(failed) if the file cannot be written; later, that only costs the replay, and is said once.
  MembershipLog(std::string path, const MembershipHeader& header);
  void note(std::uint64_t step, const comm::Team& made_by);  // of every step
  void end(std::int64_t steps, std::uint64_t hash);

 private:
  [[nodiscard]] bool write(const Json& line);
  void write_if_possible(const Json& line);

  std::string path_;
  std::ofstream file_;
  int epoch_ = 1;
  bool is_lost_ = false;
};

Membership read_membership(const std::string& path);  // Error(bad_input) if it is not that of a whole run

// What a replay must have in common with its run: not paths and processors, and the log has the threads.
Json options_for_replay(const TrainingConfig& config);

}  // namespace trireme::train
