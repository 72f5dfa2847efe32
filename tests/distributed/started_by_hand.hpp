// The tasks of a job with parameter servers, each started by itself as a user does on several machines, here all on
// free ports of the loopback.
#pragma once

#include <memory>

#include "tests/distributed/server_job.hpp"

namespace trireme::testkit {

class StartedByHand {
 public:
  explicit StartedByHand(ServerJob job);

  const std::string& worker(std::size_t index) const { return workers_.at(index); }  // its address
  const std::string& server(std::size_t index) const { return servers_.at(index); }
  Words lists() const;       // --worker-hosts, --ps-hosts
  std::string json() const;  // the same for --cluster
  static constexpr const char* kSecret = "known-to-all-tasks-of-this-job";
  static Words secret(const std::string& value = kSecret);  // for the environment

  std::unique_ptr<RunningCommand> start(const std::string& job, int index, const Words& options = {}) const;
  // Another way of naming the tasks, or another secret.
  std::unique_ptr<RunningCommand> start_as(const Words& place, const Words& options, const Words& environment) const;

 private:
  ServerJob job_;
  Words workers_, servers_;
};

}  // namespace trireme::testkit
