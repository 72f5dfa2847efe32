// Calls that a task of a job must refuse. Used by the robustness tests, in processes of their own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trireme/comm/grpc/grpc_world.hpp"

namespace trireme::comm::testkit {

class Attacker {
 public:
  Attacker(const std::vector<rpc::RpcTask>& tasks, const std::string& secret);
  ~Attacker();

  // The kinds of attack take turns, and so do the tasks.
  void attack(int number);
  // Those calls that were answered otherwise than they should, one line each.
  std::string surprises() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// A task that listens, one peer that sends good frames and one that sends a malformed one, of many kinds: throws where
// something else happens than the loss of the second.
std::string send_malformed_frames(const std::vector<rpc::RpcTask>& tasks);

}  // namespace trireme::comm::testkit
