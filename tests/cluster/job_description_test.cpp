#include "trireme/cluster/job_description.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace trireme::cluster {
namespace {

Task task(const std::string& role, int index, const std::string& host, std::vector<int> processors) {
  return {.role = role, .index = index, .host = host, .processors = std::move(processors)};
}

TEST(JobDescription, WorkersAloneAreRanks) {
  const JobDescription job{
      {task("worker", 0, "a", {0, 1, 2, 3}), task("worker", 1, "a", {4, 8}), task("worker", 2, "a", {})}};
  EXPECT_EQ(job.name(1), "rank 1");
  EXPECT_EQ(job.prefix(1), "[1] ");
  EXPECT_EQ(names(job, {0}), "rank 0");
  EXPECT_EQ(names(job, {0, 1, 2}), "ranks 0, 1 and 2");
  EXPECT_EQ(describe(job, "a"), "3 workers on a: rank 0 on processors 0-3, rank 1 on processors 4,8, rank 2 not bound");
}

TEST(JobDescription, BesideServersTasksHaveTheirRole) {
  const JobDescription job{{task("ps", 0, "a", {0}), task("worker", 0, "a", {1}), task("worker", 1, "b", {0})}};
  EXPECT_EQ(job.name(0), "ps 0");
  EXPECT_EQ(job.prefix(2), "[worker 1] ");
  EXPECT_EQ(names(job, {0, 2}), "ps 0 and worker 1");
  EXPECT_EQ(names_with_hosts(job, {0, 1}), "ps 0 and worker 0 on a");
  EXPECT_EQ(names_with_hosts(job, {0, 1, 2}), "ps 0, worker 0 and worker 1 on a, b");
  EXPECT_EQ(describe(job, "a"), "1 ps and 1 worker on a: ps 0 on processor 0, worker 0 on processor 1");
  EXPECT_EQ(describe(job, "b"), "1 worker on b: worker 1 on processor 0");
}

TEST(JobDescription, ATaskTravelsUnchanged) {
  Task sent = task("worker", 3, "host", {1, 5});
  sent.command = {"/bin/sh", "-c", "echo '\xff\n'"};
  sent.environment = {{"NAME", "value with = and \xfe"}};
  const Task received = nlohmann::json::from_cbor(nlohmann::json::to_cbor(sent));
  EXPECT_EQ(received.role, sent.role);
  EXPECT_EQ(received.index, sent.index);
  EXPECT_EQ(received.host, sent.host);
  EXPECT_EQ(received.processors, sent.processors);
  EXPECT_EQ(received.command, sent.command);
  EXPECT_EQ(received.environment, sent.environment);
}

}  // namespace
}  // namespace trireme::cluster
