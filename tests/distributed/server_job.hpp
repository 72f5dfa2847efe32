// `trireme bench` of workers and parameter servers on a small network, as the tests of such jobs start it.
#pragma once

#include <filesystem>
#include <string>

#include "tests/distributed/running_command.hpp"

namespace trireme::testkit {

inline constexpr const char* kProtocols[] = {"grpc", "grpc+ucx", "grpc+mpi"};
// This build has the libraries for it.
bool has_protocol(const std::string& protocol);

struct ServerJob {
  int workers = 2, servers = 1;
  std::string protocol = "grpc";
  int batch_size = 2;  // of each worker
  int steps = 20;
  Words options = {};  // of bench
};
inline constexpr int kForEver = 1'000'000;

// What follows `trireme bench` for this; where the tasks are is not part of it.
Words bench_words(const ServerJob& job);
// For LaunchedJob.
Words launch_words(const ServerJob& job);

// Runs it to its end, which has to be a good one. What rank 0 has recorded.
std::filesystem::path run_to_record(ServerJob job, const std::filesystem::path& record);

Words operator+(Words words, const Words& more);

}  // namespace trireme::testkit
