// A whole network test: every pair over every transport, then all-reduce. Every task of the job runs the same; what is
// shown meanwhile is an observer's business. Run by `trireme net` and by tests.
#pragma once

#include <string>
#include <vector>

#include "trireme/lab/network_output.hpp"

namespace trireme::lab {

struct NetworkPlan {
  NetworkOptions options;
  std::string pairs = "hosts";
  std::vector<std::string> transports = {};  // none: all that the job has
  bool measures_all_reduce = true;
  std::vector<comm::Algorithm> algorithms = {};  // none: all that the transport has
  std::string model = {};                        // empty: none
  double timeout_seconds = 60;
};

// Error(bad_input) that names the option.
void check(const NetworkOptions& options);

// The tasks, and what they can talk over.
struct NetworkJob {
  comm::Communicator& control;               // by which they agree
  std::vector<NetworkTransport> transports;  // tcp, which every job has, is added
  std::vector<std::string> hosts;            // by rank: where TCP sockets reach it
};

// Called on every rank after each part, with what is known until then.
class NetworkObserver {
 public:
  virtual ~NetworkObserver() = default;
  virtual void on_start(const NetworkReport&) {}
  virtual void on_pair(const NetworkReport&) {}
  virtual void on_pairs(const NetworkReport&) {}
  virtual void on_all_reduce(const NetworkReport&, const std::string& /*transport*/) {}
  virtual void on_model(const NetworkReport&) {}
};

// Collective over the control; the report is the same on all ranks.
NetworkReport run_network_test(const NetworkPlan& plan, const NetworkJob& job, NetworkObserver& observer);

}  // namespace trireme::lab
