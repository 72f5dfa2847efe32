// A whole network test: every pair over every transport, then all-reduce. Every task of the job runs the same; what is
// shown meanwhile is an observer's business. Run by `trireme net` and by tests.
#pragma once

#include <string>
#include <vector>

#include "trireme/base/json.hpp"
#include "trireme/lab/network_all_reduce.hpp"
#include "trireme/lab/network_test.hpp"
#include "trireme/report/run_record.hpp"

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

// All that one `trireme net` has measured.
struct NetworkReport {
  std::vector<comm::Member> members;                            // by rank
  std::vector<std::pair<std::string, std::string>> transports;  // name, and what carries its messages in words
  std::vector<PairResult> pairs;
  std::vector<AllReduceResult> all_reduce;  // by transport, algorithm and size
  std::string model;                        // empty: none was asked for
  std::vector<std::int64_t> buckets;        // of its gradients
  std::vector<AllReduceResult> model_all_reduce;
  double load = 0;  // of the busiest host before the test: threads of other programs that ran or waited for a core
  int cores = 1;    // of that host
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

// What people see of it: times and bandwidths by size. Few sizes: every fourth power of two and the largest.
std::string pair_table(const PairResult& result, const std::vector<comm::Member>& members, bool all_sizes);
// One row per pair and transport.
std::string fit_table(const std::vector<PairResult>& pairs, const std::vector<comm::Member>& members);
// Bus bandwidth by size (rows) and algorithm (columns), for one transport.
std::string all_reduce_table(const std::vector<AllReduceResult>& results, const std::string& transport, bool all_sizes);
// One row per transport and algorithm.
std::string model_table(const NetworkReport& report);

// Everything, with every sample. Build, machine, command and time are added here; the configuration is the caller's.
Json network_record(const NetworkReport& report, const std::string& started, Json config);

}  // namespace trireme::lab
