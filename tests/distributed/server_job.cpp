#include "tests/distributed/server_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/distributed/launched_job.hpp"
#include "trireme/comm/world.hpp"

namespace trireme::testkit {

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

bool has_protocol(const std::string& protocol) {
  const auto libraries = comm::transport_versions();
  const auto has_library = [&](const std::string& name) {
    return std::any_of(libraries.begin(), libraries.end(), [&](const auto& library) { return library.first == name; });
  };
  if (!has_library("gRPC")) return false;
  return protocol == "grpc" || has_library(protocol == "grpc+ucx" ? "UCX" : "MPI");
}

Words bench_words(const ServerJob& job) {
  return Words{"--model",
               "mnist",
               "--autotune",
               "off",
               "--protocol",
               job.protocol,
               "--batch-size",
               std::to_string(job.batch_size),
               "--num-warmup-batches",
               "0",
               "--num-batches",
               std::to_string(job.steps)} +
         job.options;
}

Words launch_words(const ServerJob& job) {
  return Words{"--workers", std::to_string(job.workers), "--ps", std::to_string(job.servers), "--oversubscribe", "--",
               "bench"} +
         bench_words(job);
}

std::filesystem::path run_to_record(ServerJob job, const std::filesystem::path& record) {
  job.options = job.options + Words{"--record", record.string()};
  LaunchedJob launched(launch_words(job));
  EXPECT_EQ(launched.exit_code(std::chrono::seconds(100)), 0) << launched.err() << launched.out();
  EXPECT_TRUE(launched.is_gone_within(std::chrono::seconds(5)));
  return record;
}

}  // namespace trireme::testkit
