// What a launch on this machine is going to start, and what it refuses before anything is started.
#include "trireme/cluster/launch_plan.hpp"

#include <gtest/gtest.h>

#include <set>

#include "trireme/base/error.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/comm/world.hpp"

namespace trireme::cluster {
namespace {

LaunchOptions launch_of(int workers, int servers, std::vector<std::string> command = {"bench"}) {
  LaunchOptions options;
  options.workers = workers;
  options.ps = servers;
  options.oversubscribe = true;
  options.command = std::move(command);
  return options;
}

// A command that needs what is given here, whatever its words.
CommandCheck needing(LaunchNeeds needs) {
  return [needs](const std::vector<std::string>&, const comm::JobSize&) { return needs; };
}

void expect_refused(const LaunchOptions& options, const LaunchNeeds& needs, const std::string& part) {
  try {
    plan_launch(options, needing(needs));
    ADD_FAILURE() << "taken, not refused: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(LaunchPlan, WorkersComeFirstAndEveryTaskKnowsItsPlace) {
  const LaunchPlan plan =
      plan_launch(launch_of(2, 1, {"bench", "--model", "mnist"}),
                  needing({.protocol = "grpc", .survives_lost_workers = true, .needs_first_worker = true}));
  ASSERT_EQ(plan.job.tasks.size(), 3u);
  std::set<std::string> addresses, secrets;
  for (std::size_t i = 0; i < 3; ++i) {
    const Task& task = plan.job.tasks[i];
    EXPECT_EQ(task.role, i < 2 ? kWorkerRole : kServerRole);
    EXPECT_EQ(task.index, static_cast<int>(i % 2));
    EXPECT_EQ(task.environment.at(kTaskCountVariable), i < 2 ? "2" : "1");
    EXPECT_EQ(std::vector(task.command.begin() + 1, task.command.end()),
              (std::vector<std::string>{"bench", "--model", "mnist"}));
    addresses.insert(task.address);
    secrets.insert(task.environment.at(kJobSecretVariable));
  }
  EXPECT_EQ(addresses.size(), 3u) << "each has an address of its own";
  EXPECT_EQ(secrets.size(), 1u) << "all have one secret";
  EXPECT_EQ(plan.job.tasks[2].environment.at("CUDA_VISIBLE_DEVICES"), "") << "GPUs are for workers";
  EXPECT_FALSE(plan.job.tasks[0].environment.contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_TRUE(plan.job.survives_lost_workers);
  EXPECT_TRUE(plan.job.needs_first_worker);
  EXPECT_EQ(commands_text(plan).find(*secrets.begin()), std::string::npos) << "the secret is not shown";
  EXPECT_NE(placement_text(plan).find("trireme: "), std::string::npos);
}

TEST(LaunchPlan, TheCommandIsCheckedForTheSizeOfTheJob) {
  comm::JobSize asked;
  plan_launch(launch_of(3, 2), [&](const std::vector<std::string>& words, const comm::JobSize& size) {
    EXPECT_EQ(words, std::vector<std::string>{"bench"});
    asked = size;
    return LaunchNeeds{.protocol = "grpc"};
  });
  EXPECT_EQ(asked.workers, 3);
  EXPECT_EQ(asked.servers, 2);
}

TEST(LaunchPlan, WorkersThatTalkMpiHaveNeitherAddressesNorASecret) {
  if (!comm::has_transport("MPI")) GTEST_SKIP() << "this build has no MPI";
  const LaunchPlan plan = plan_launch(launch_of(2, 0), needing({.protocol = "mpi"}));
  for (const Task& task : plan.job.tasks) {
    EXPECT_EQ(task.address, "");
    EXPECT_FALSE(task.environment.contains(kJobSecretVariable));
  }
  LaunchOptions with_port = launch_of(2, 0);
  with_port.worker_port = 5000;
  expect_refused(with_port, {.protocol = "mpi"}, "--worker-port has no effect: workers that use MPI have no ports");
}

TEST(LaunchPlan, WhatCannotBeIsRefused) {
  const LaunchNeeds grpc{.protocol = "grpc"};
  LaunchOptions options = launch_of(2, 0);
  options.workers.reset();
  expect_refused(options, grpc, "the number of workers is missing");
  expect_refused(launch_of(2, 0, {}), grpc, "nothing to launch");
  expect_refused(launch_of(2, 0, {"launch", "--", "bench"}), grpc, "a launch cannot be launched");
  expect_refused(launch_of(2, 1), {.protocol = "mpi"}, "--protocol mpi does not support parameter servers");
  options = launch_of(2, 0);
  options.ps_port = 5000;
  expect_refused(options, grpc, "--ps-port has no effect without --ps");
  options = launch_of(2, 0);
  options.starter = "magic";
  expect_refused(options, grpc, "--starter magic: must be one of auto, mpi, process");
  expect_refused(launch_of(0, 0), grpc, "--workers 0: must be a whole number from 1 to ");
  options = launch_of(2, 0);
  options.workers = (std::int64_t{1} << 32) + 2;
  expect_refused(options, grpc, "--workers 4294967298: must be");
  options = launch_of(2, 0);
  options.hosts.network = "eth0";
  expect_refused(options, grpc, "--network has no effect without --hosts, --hostfile, --public-ips or --slurm");
  options = launch_of(2, 0);
  options.hosts.ship = true;
  expect_refused(options, grpc, "--ship has no effect without --hosts");
  options = launch_of(2, 0);
  options.hosts.ssh.user = "me";
  expect_refused(options, grpc, "--ssh-user has no effect without --hosts, --hostfile or --public-ips");
  options = launch_of(2, 0);
  options.keep_going = true;
  expect_refused(options, grpc, "--keep-going only applies to --program");
  options = launch_of(2, 0, {});
  options.program = "/no/such/program";
  expect_refused(options, grpc, "--program /no/such/program: there is no such program");
}

}  // namespace
}  // namespace trireme::cluster
