// Workers and parameter servers that are started one by one, as tf_cnn_benchmarks has it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/distributed/bench_record.hpp"
#include "tests/distributed/started_by_hand.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;
using Task = std::unique_ptr<RunningCommand>;

class ByHand : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_protocol("grpc")) GTEST_SKIP() << "this build has no gRPC";
  }
  void expect_all_end_well(const std::vector<Task>& tasks) {
    for (const Task& task : tasks) EXPECT_EQ(task->exit_code(40s), 0) << task->err() << task->out();
    EXPECT_EQ(read_record(record_).at("losses").size(), 2U);
    EXPECT_EQ(read_record(record_).at("results").at("servers").size(), 2U);
  }

  const TemporaryFolder folder_;
  const std::string record_ = folder_ / "job.json";
  const Words recorded_{"--record", record_};
  const StartedByHand job_{{.workers = 2, .servers = 2}};
};

TEST_F(ByHand, WorkersMayComeFirst) {
  std::vector<Task> tasks;
  tasks.push_back(job_.start("worker", 0, recorded_));
  tasks.push_back(job_.start("worker", 1));
  ASSERT_TRUE(tasks[0]->wait_for_output("waiting for", 10s)) << tasks[0]->err();
  EXPECT_TRUE(tasks[0]->wait_for_output("ps 0", 10s)) << tasks[0]->err();
  tasks.push_back(job_.start("ps", 0));
  tasks.push_back(job_.start("ps", 1));
  expect_all_end_well(tasks);
}

TEST_F(ByHand, ServersMayComeFirstAndLeaveByThemselves) {
  std::vector<Task> tasks;
  tasks.push_back(job_.start("ps", 1));
  tasks.push_back(job_.start("ps", 0));
  ASSERT_TRUE(tasks[0]->wait_for_output("waiting for", 10s)) << tasks[0]->err();
  tasks.push_back(job_.start("worker", 1));
  tasks.push_back(job_.start("worker", 0, recorded_));
  expect_all_end_well(tasks);
}

TEST_F(ByHand, TheClusterMayBeAFileAndTheSecretToo) {
  std::ofstream(folder_ / "cluster.json") << job_.json();
  std::ofstream(folder_ / "secret") << "the-secret-in-this-file\n";
  chmod((folder_ / "secret").c_str(), 0600);
  const Words common{"--cluster", folder_ / "cluster.json", "--secret-file", folder_ / "secret"};
  std::vector<Task> tasks;
  for (const char* name : {"ps", "worker"}) {
    for (const char* index : {"0", "1"}) {
      const bool records = std::string(name) == "worker" && std::string(index) == "0";
      tasks.push_back(
          job_.start_as(common + Words{"--job-name", name, "--task-index", index}, records ? recorded_ : Words{}, {}));
    }
  }
  expect_all_end_well(tasks);
}

TEST_F(ByHand, ConnectionsMayBeEncrypted) {
  const std::string make_certificates =
      "cd '" + folder_.path().string() +
      "' && openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem"
      " && openssl req -newkey rsa:2048 -nodes -subj /CN=task -keyout task.key -out task.csr"
      " && echo subjectAltName=IP:127.0.0.1 > names"
      " && openssl x509 -req -in task.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out "
      "task.pem";
  if (std::system(("(" + make_certificates + ") > '" + folder_ / "log" + "' 2>&1").c_str()) != 0) {
    GTEST_SKIP() << "no certificates could be made: the command openssl is missing or fails";
  }
  const Words tls{"--tls-cert",         folder_ / "task.pem", "--tls-key",
                  folder_ / "task.key", "--tls-ca",           folder_ / "ca.pem"};
  std::vector<Task> tasks;
  tasks.push_back(job_.start("ps", 0, tls));
  tasks.push_back(job_.start("ps", 1, tls));
  tasks.push_back(job_.start("worker", 0, tls + recorded_));
  tasks.push_back(job_.start("worker", 1, tls));
  expect_all_end_well(tasks);
  EXPECT_TRUE(has(tasks[0]->err(), "TLS")) << tasks[0]->err();
}

// All tasks but one are there.
void expect_named(const StartedByHand& job, const std::vector<Task>& tasks, const std::string& missing,
                  const std::string& address) {
  bool is_named = false;
  for (const Task& task : tasks) {
    EXPECT_EQ(task->exit_code(30s), 1) << task->err();
    is_named = is_named || has(task->err(), missing + " (" + address + ") did not join within 2");
    EXPECT_TRUE(has(task->err(), missing)) << task->err();
  }
  EXPECT_TRUE(is_named) << tasks[0]->err() << job.json();
}

TEST_F(ByHand, WhoNeverComesIsNamed) {
  const Words brief{"--join-timeout", "2"};
  std::vector<Task> tasks;
  tasks.push_back(job_.start("worker", 0, brief));
  tasks.push_back(job_.start("ps", 0, brief));
  tasks.push_back(job_.start("ps", 1, brief));
  expect_named(job_, tasks, "worker 1", job_.worker(1));
  tasks.clear();
  tasks.push_back(job_.start("worker", 0, brief));
  tasks.push_back(job_.start("worker", 1, brief));
  tasks.push_back(job_.start("ps", 0, brief));
  expect_named(job_, tasks, "ps 1", job_.server(1));
}

void expect_refused(const Task& task, const std::string& part) {
  EXPECT_EQ(task->exit_code(), 2) << task->err();
  EXPECT_TRUE(has(task->err(), part)) << "expected '" << part << "' in: " << task->err();
  EXPECT_EQ(task->out(), "");
}

TEST_F(ByHand, MistakesAreRefusedAtOnce) {
  expect_refused(job_.start("worker", 2), "--task-index 2: there are workers 0 to 1");
  expect_refused(job_.start("ps", -1), "--task-index -1");
  expect_refused(job_.start("chief", 0), "there is no job 'chief'");
  expect_refused(job_.start_as(job_.lists(), {}, StartedByHand::secret()), "which task of the cluster is this process");
  expect_refused(job_.start_as(job_.lists() + Words{"--job-name", "ps", "--task-index", "0"}, {}, {}),
                 "need a secret to recognize each other");
  expect_refused(job_.start_as({"--worker-hosts", "192.0.2.7:2220", "--ps-hosts", job_.server(0), "--job-name",
                                "worker", "--task-index", "0"},
                               {}, StartedByHand::secret()),
                 "192.0.2.7:2220");
  expect_refused(job_.start_as({"--worker-hosts", job_.worker(0) + "," + job_.worker(0), "--ps-hosts", job_.server(0),
                                "--job-name", "worker", "--task-index", "0"},
                               {}, StartedByHand::secret()),
                 job_.worker(0));
}

TEST_F(ByHand, TwoTasksWithOneIndexAreNoticed) {
  const Task first = job_.start("ps", 0);
  ASSERT_TRUE(first->wait_for_output("waiting for", 10s)) << first->err();
  expect_refused(job_.start("ps", 0),
                 "ps 0: " + job_.server(0) + " is in use; another process, or a second task with this index");
}

TEST_F(ByHand, ATaskWithAnotherSecretIsRefused) {
  const Task first = job_.start("worker", 0);  // where the others meet
  ASSERT_TRUE(first->wait_for_output("waiting for", 10s)) << first->err();
  const Task stranger = job_.start_as(job_.lists() + Words{"--job-name", "ps", "--task-index", "0"}, {},
                                      StartedByHand::secret("another-secret-than-that-of-the-job"));
  EXPECT_NE(stranger->exit_code(30s), 0);
  EXPECT_TRUE(has(stranger->err(), "worker 0 (" + job_.worker(0) + ") refuses the secret of ps 0")) << stranger->err();
  EXPECT_TRUE(has(first->err(), "it does not know the job's secret")) << first->err();
}

}  // namespace
}  // namespace trireme::testkit
