// A whole network test: every pair over every transport, then all-reduce. Every task of the job runs the same; an
// observer shows progress. Run by `trireme net` and by tests.
#pragma once

#include <string>
#include <vector>

#include "trireme/base/json.hpp"
#include "trireme/lab/net/network_all_reduce.hpp"
#include "trireme/lab/net/network_test.hpp"
#include "trireme/record/network_record.hpp"

namespace trireme::lab {

struct NetworkPlan {
  NetworkOptions options;
  std::string pairs = "hosts";
  std::vector<std::string> transports = {};  // empty: all that the job has
  bool measures_all_reduce = true;
  std::vector<comm::Algorithm> algorithms = {};  // empty: all that the transport has
  std::string model = {};                        // empty: none
  double timeout_seconds = 60;
};

void check(const NetworkOptions& options);  // Error(bad_input) names the option

// The tasks and their transports.
struct NetworkJob {
  comm::Communicator& control;               // for coordination
  std::vector<NetworkTransport> transports;  // tcp, which every job has, is added
  std::vector<std::string> hosts;            // by rank: address for TCP sockets
};

// All measurements of one `trireme net`.
struct NetworkReport {
  std::vector<comm::Member> members;                            // by rank
  std::vector<std::pair<std::string, std::string>> transports;  // name, and its carrier in words
  std::vector<PairResult> pairs;
  std::vector<AllReduceResult> all_reduce;  // by transport, algorithm and size
  std::string model;                        // empty: none requested
  std::vector<std::int64_t> buckets;        // of its gradients
  std::vector<AllReduceResult> model_all_reduce;
  double load = 0;  // busiest host before the test: other programs' threads that ran or waited for a core
  int cores = 1;    // of that host
};

// Called on every rank after each part, with the results so far, and before it, with the number of parts done.
class NetworkObserver {
 public:
  virtual ~NetworkObserver() = default;
  virtual void on_part(std::int64_t /*done*/, std::int64_t /*all*/) {}
  virtual void on_start(const NetworkReport&) {}
  virtual void on_pair(const NetworkReport&) {}
  virtual void on_pairs(const NetworkReport&) {}
  virtual void on_all_reduce(const NetworkReport&, const std::string& /*transport*/) {}
  virtual void on_model(const NetworkReport&) {}
};

// Collective over the control communicator; the report is the same on all ranks.
NetworkReport run_network_test(const NetworkPlan& plan, const NetworkJob& job, NetworkObserver& observer);

// Times and bandwidths by size. Unless all_sizes: every fourth power of two and the largest.
std::string pair_table(const PairResult& result, const std::vector<comm::Member>& members, bool all_sizes);
// One row per pair and transport.
std::string fit_table(const std::vector<PairResult>& pairs, const std::vector<comm::Member>& members);
// Bus bandwidth by size (rows) and algorithm (columns) of one transport.
std::string all_reduce_table(const std::vector<AllReduceResult>& results, const std::string& transport, bool all_sizes);
std::string model_table(const NetworkReport& report);  // a row per transport and algorithm

// Everything, with every sample. Adds build, machine, command and time; the caller gives the configuration.
record::NetworkRecord network_record(const NetworkReport& report, const std::string& started, Json config);

}  // namespace trireme::lab
