// What people and programs see of a network test: tables, and the record. Used by `trireme net`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/lab/network_all_reduce.hpp"
#include "trireme/lab/network_test.hpp"
#include "trireme/report/run_record.hpp"

namespace trireme::lab {

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

// Times and bandwidths by size. Few sizes: every fourth power of two and the largest.
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
