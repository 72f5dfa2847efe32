// `trireme launch --slurm`: jobs in allocations of a real Slurm, and jobs that are submitted to it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "tests/distributed/bench_record.hpp"
#include "tests/distributed/running_command.hpp"
#include "tests/hosts/test_cluster.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

constexpr int kNodes = 4;

class LaunchSlurm : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = std::make_unique<TestCluster>(kNodes, WithSlurm::yes); }
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override {
    if (!cluster_->reason_to_skip().empty()) GTEST_SKIP() << cluster_->reason_to_skip();
    std::filesystem::create_directory(folder());
    const auto idle = [] { return on_head("sinfo -h -t idle -o %D | tr -d '\\n'").output == std::to_string(kNodes); };
    ASSERT_TRUE(wait_until(idle, 30s)) << "after another test: " << on_head("sinfo; squeue").output;
  }

  // On the host from which users submit; the words are for a shell.
  static CommandOutcome on_head(const std::string& script) {
    return cluster_->on("head", "export OMPI_MCA_mpi_yield_when_idle=1; cd " + folder() + "; " + script);
  }
  static std::string launch(const std::string& arguments) {
    return std::string("timeout 60 ") + TRIREME_BINARY + " launch --slurm " + arguments;
  }
  static CommandOutcome in_allocation(int nodes, const std::string& arguments) {
    return on_head("salloc --quiet --immediate=20 --nodes=" + std::to_string(nodes) + " " + launch(arguments));
  }
  static std::string only_job() { return on_head("squeue -h -o %i | tr -d '\\n'").output; }
  static bool wait_for_file(const std::string& path, const std::string& text) {
    return wait_until([&] { return has(read_file(path), text); }, 40s);
  }
  static void expect_nothing_left(int seconds = 5) {
    for (int i = 0; i < kNodes; ++i) cluster_->expect_empty(fmt::format("n{}", i), seconds);
  }
  // Of each test: they share the cluster.
  static std::string folder() {
    return cluster_->folder() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  static std::string file(const std::string& name) { return folder() + "/" + name; }

  static std::unique_ptr<TestCluster> cluster_;
};
std::unique_ptr<TestCluster> LaunchSlurm::cluster_;

constexpr const char* kTraining = " bench --model mnist --num-warmup-batches 0 --num-batches 5";
constexpr const char* kEndless =
    " bench --model mnist --batch-size 2 --num-batches 1000000 --display-every 1 --num-warmup-batches 0";

std::vector<std::string> hosts_of(const nlohmann::json& record) {
  std::vector<std::string> hosts;
  for (const auto& task : record.at("cluster")) {
    hosts.push_back(task.at("role").get<std::string>() + " on " + task.at("host").get<std::string>());
  }
  return hosts;
}

TEST_F(LaunchSlurm, FourNodesTrainLikeOneProcess) {
  ASSERT_EQ(run_shell(std::string(TRIREME_BINARY) + kTraining + " --batch-size 12 --record " + file("one.json")).code,
            0);
  const auto expected = mean_losses(read_record(file("one.json")));
  struct Way {
    std::string launch, bench;
    std::vector<std::string> hosts;
  };
  const std::vector<std::string> workers{"worker on n0", "worker on n1", "worker on n2", "worker on n3"};
  std::vector<std::string> with_servers = workers;
  with_servers.insert(with_servers.end(), {"ps on n0", "ps on n1"});
  for (const Way& way : {Way{"", "", workers}, Way{"", " --protocol mpi", workers},
                         Way{"--ps 2", " --variable-update parameter_server", with_servers},
                         Way{"--ps 2", " --protocol grpc+mpi --variable-update parameter_server", with_servers}}) {
    const std::string record = file("record.json");
    const CommandOutcome outcome =
        in_allocation(kNodes, way.launch + " --" + kTraining + " --batch-size 3 --record " + record + way.bench);
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_TRUE(has(outcome.output, "trireme: n3: reached, 1 core")) << outcome.output;
    expect_same_losses(mean_losses(read_record(record)), expected, 1e-4);
    EXPECT_EQ(hosts_of(read_record(record)), way.hosts);
  }
  expect_nothing_left();
}

TEST_F(LaunchSlurm, StagesOfAPipelineRunOnNodes) {
  const CommandOutcome outcome =
      in_allocation(3, std::string("--") + kTraining + " --batch-size 4 --parallel pipeline:3 --record record.json");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(read_record(file("record.json")).at("pipeline").at("stages").size(), 3u);
  EXPECT_EQ(hosts_of(read_record(file("record.json"))),
            (std::vector<std::string>{"worker on n0", "worker on n1", "worker on n2"}));
  expect_nothing_left();
}

TEST_F(LaunchSlurm, ASubmittedJobRunsAndScancelEndsItWithARecord) {
  const CommandOutcome done = on_head(
      launch("--submit --nodes 2 --ntasks-per-node 2 --time 5 --sbatch=--wait --oversubscribe --program /bin/sh -- -c "
             "'echo $(hostname) $TRIREME_TASK_INDEX of $TRIREME_TASK_COUNT'"));
  ASSERT_EQ(done.code, 0) << done.output;
  const std::string id = std::to_string(std::stoi(done.output.substr(done.output.find("job ") + 4)));
  const std::string output = read_file(file("slurm-" + id + ".out"));
  for (const char* part : {"[0] n0 0 of 4", "[1] n0 1 of 4", "[3] n1 3 of 4"}) EXPECT_TRUE(has(output, part)) << output;

  const CommandOutcome submitted =
      on_head(launch("--submit --nodes 4 --sbatch=--output=endless.out --") + kEndless + " --record endless.json");
  ASSERT_EQ(submitted.code, 0) << submitted.output;
  EXPECT_TRUE(has(submitted.output, "its output goes to " + file("endless.out"))) << submitted.output;
  ASSERT_TRUE(wait_for_file(file("endless.out"), "images/sec: ")) << read_file(file("endless.out"));
  on_head("scancel " + only_job());
  expect_nothing_left(10);
  EXPECT_TRUE(has(read_file(file("endless.out")), "trireme: interrupted")) << read_file(file("endless.out"));
  EXPECT_FALSE(mean_losses(read_record(file("endless.json"))).empty()) << read_file(file("endless.json"));
}

// Slurm does not tell the launcher then, but only what runs on the nodes.
TEST_F(LaunchSlurm, ScancelOfAnInteractiveAllocationEndsInARecord) {
  run_shell(std::string("sh -c ") + "'" + TRIREME_TESTCLUSTER + " --folder " + cluster_->folder() +
            " exec head salloc --quiet --immediate=20 --nodes=4 " + launch("--ps 2 --") + kEndless +
            " --variable-update parameter_server --record " + file("record.json") + " >" + file("out") + " 2>&1 &'");
  ASSERT_TRUE(wait_for_file(file("out"), "images/sec: ")) << read_file(file("out"));
  on_head("scancel " + only_job());
  expect_nothing_left(10);
  EXPECT_TRUE(wait_for_file(file("out"), "trireme: interrupted")) << read_file(file("out"));
  EXPECT_FALSE(mean_losses(read_record(file("record.json"))).empty()) << read_file(file("record.json"));
}

TEST_F(LaunchSlurm, ANodeThatGoesAwayIsNamed) {
  run_shell(std::string("sh -c ") + "'" + TRIREME_TESTCLUSTER + " --folder " + cluster_->folder() +
            " exec head salloc --quiet --immediate=20 --nodes=3 " + launch("--") + kEndless + " >" + file("out") +
            " 2>&1 &'");
  ASSERT_TRUE(wait_for_file(file("out"), "images/sec: ")) << read_file(file("out"));
  cluster_->run("stop n1");
  EXPECT_TRUE(wait_for_file(file("out"), "lost worker 1 (n1)")) << read_file(file("out"));
  cluster_->run("start n1");
  on_head("scancel " + only_job());
  expect_nothing_left(15);
}

TEST_F(LaunchSlurm, WhatCannotRunIsRefused) {
  const auto expect_refused = [](const CommandOutcome& outcome, int code, const std::string& part) {
    EXPECT_EQ(outcome.code, code) << outcome.output;
    EXPECT_TRUE(has(outcome.output, part)) << outcome.output;
  };
  expect_refused(on_head(launch("-- bench")), 2, "not inside a Slurm allocation; get one with salloc");
  expect_refused(in_allocation(2, "--workers 3 -- bench"), 2, "--workers 3: 2 Slurm nodes hold 2 workers");
  expect_refused(in_allocation(2, "--ps 3 -- bench"), 2, "at most as many as workers (2)");
  expect_refused(in_allocation(1, "--remote-program /nowhere/trireme -- bench"), 3,
                 "n0: /nowhere/trireme does not exist");
  expect_refused(on_head(launch("--submit --nodes 2 --workers 3 -- bench")), 2, "2 Slurm nodes hold 2 workers");
  expect_refused(on_head(launch("--submit --nodes 2 --partition none -- bench")), 1, "sbatch ended with exit code");
  expect_refused(on_head(launch("--nodes 2 -- bench")), 2, "--nodes has no effect without --submit");
}

}  // namespace
}  // namespace trireme::testkit
