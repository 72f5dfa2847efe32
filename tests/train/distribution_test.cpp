#include "trireme/train/distribution.hpp"

#include <gtest/gtest.h>

#include "trireme/base/error.hpp"
#include "trireme/train/step_config.hpp"

namespace trireme::train {
namespace {

using Change = std::function<void(DistributionOptions&)>;

DistributionConfig resolved(const comm::JobSize& job, const Change& change = {}, bool forward_only = false) {
  DistributionOptions options;
  if (change) change(options);
  return resolve(options, job, forward_only);
}

DistributionConfig resolved(int workers, const Change& change = {}, bool forward_only = false) {
  return resolved(comm::JobSize{.workers = workers}, change, forward_only);
}

void expect_refused(const comm::JobSize& job, const Change& change, const std::string& part,
                    bool forward_only = false) {
  try {
    resolved(job, change, forward_only);
    FAIL() << "not refused: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Distribution, SeveralWorkersTrainTogetherUnlessToldOtherwise) {
  EXPECT_TRUE(resolved(2).is_synchronous());
  EXPECT_FALSE(resolved(1).is_synchronous());
  EXPECT_FALSE(resolved(2, {}, true).is_synchronous()) << "forward only";
  EXPECT_FALSE(resolved(2, [](auto& o) { o.variable_update = "independent"; }).is_synchronous());
}

TEST(Distribution, AutomaticPipelinesKeepToWhatIsGiven) {
  StepOptions options;
  options.model = "mnist";
  options.batch_size = 8;
  options.distribution.parallel = "auto";
  options.distribution.micro_batches = 4;
  for (const char* schedule : {"gpipe", "interleaved"}) {
    options.distribution.schedule = schedule;
    const StepConfig config = resolve(options, {.workers = 2});
    EXPECT_TRUE(config.distribution.pipeline.is_automatic);
    EXPECT_EQ(config.distribution.pipeline.micro_batches, 4);
  }
  options.distribution.micro_batches = 5;
  EXPECT_THROW(resolve(options, {.workers = 2}), Error);
}

TEST(Distribution, BadOptionsAreRefusedWithTheLegalOnes) {
  expect_refused(
      {.workers = 2}, [](auto& o) { o.variable_update = "horovod"; },
      "auto, all_reduce, parameter_server, distributed_replicated, independent");
  expect_refused(
      {.workers = 2}, [](auto& o) { o.all_reduce = "gossip"; }, "halving_doubling");
  expect_refused(
      {.workers = 2}, [](auto& o) { o.all_reduce = "nccl", o.gradient_precision = "bf16"; }, "only in fp32");
  expect_refused(
      {.workers = 2}, [](auto& o) { o.all_reduce = "nccl", o.overlap = "off"; }, "during backward");
  expect_refused(
      {.workers = 2}, [](auto& o) { o.bucket_mb = "-3"; }, "--bucket-mb -3");
  expect_refused(
      {.workers = 2}, [](auto& o) { o.bucket_mb = "4x"; }, "--bucket-mb 4x");
  expect_refused(
      {.workers = 2}, [](auto& o) { o.overlap = "yes"; }, "must be one of on, off");
  expect_refused(
      {.workers = 2}, [](auto& o) { o.gradient_precision = "int8"; }, "bf16");
  expect_refused(
      {.workers = 2}, [](auto& o) { o.comm_timeout = 0; }, "--comm-timeout");
  expect_refused(
      {.workers = 3}, [](auto& o) { o.parallel = "hybrid:2-1", o.schedule = "interleaved"; },
      "equally many workers in each stage, not hybrid:2-1");
  expect_refused(
      {.workers = 2}, [](auto& o) { o.check_replicas = -1; }, "--check-replicas");
  expect_refused(
      {.workers = 2},
      [](auto& o) {
        o.sync_batch_norm = true;
        o.variable_update = "independent";
      },
      "--sync-batch-norm");
}

TEST(Distribution, OptimizersAreDividedByAllReduceAlone) {
  const auto sharded = [](auto& o) { o.shard_optimizer = true; };
  EXPECT_EQ(resolved(3, sharded).state_shards(3), 3);
  EXPECT_EQ(resolved(3).state_shards(3), 1);
  EXPECT_TRUE(resolved(1, sharded).shard_optimizer) << "a run may go on with one worker";
  expect_refused({.workers = 2}, sharded, "nothing is updated", true);
  expect_refused({.workers = 2, .servers = 1}, sharded, "no effect with parameter servers");
}

constexpr comm::JobSize kWithServers{.workers = 3, .servers = 2};

TEST(Distribution, ElasticWorkersSurviveALoss) {
  const DistributionConfig config = resolved(3, [](auto& o) { o.elastic = "2:4"; });
  EXPECT_TRUE(config.is_elastic());
  EXPECT_TRUE(config.survives_lost_workers());
  EXPECT_EQ(config.least_workers, 2);
  EXPECT_FALSE(resolved(3).is_elastic());
  for (const char* text : {"2", "2:", ":4", "4:2", "0:4", "2:4:6", "a:b"}) {
    expect_refused(
        {.workers = 3}, [&](auto& o) { o.elastic = text; }, "must be MIN:MAX workers");
  }
  const auto with = [](auto change) {
    return [change](DistributionOptions& o) {
      o.elastic = "1:4";
      change(o);
    };
  };
  expect_refused({.workers = 5}, with([](auto&) {}), "there are 5 workers; start 1 to 4");
  expect_refused({.workers = 2, .servers = 1}, with([](auto&) {}), "no --ps");
  expect_refused({.workers = 2}, with([](auto& o) { o.shard_optimizer = true; }), "--shard-optimizer");
  expect_refused({.workers = 2}, with([](auto& o) { o.sync_batch_norm = true; }), "--sync-batch-norm");
  expect_refused({.workers = 2}, with([](auto& o) { o.check_replicas = 3; }), "--check-replicas");
  expect_refused({.workers = 2}, with([](auto& o) { o.all_reduce = "library"; }), "--all-reduce library");
  expect_refused({.workers = 2}, with([](auto& o) { o.parallel = "pipeline:2"; }), "--parallel pipeline:2");
}

TEST(Distribution, GpusSumGradientsUnlessTheHostsAreAskedTo) {
  const auto sums = [](const Change& change) {
    StepOptions options;
    options.device = "cuda";
    change(options.distribution);
    return resolve(options, {.workers = 2}).distribution.gpu_sums;
  };
  EXPECT_EQ(sums([](auto&) {}), GpuSums::automatic);
  EXPECT_EQ(sums([](auto& o) { o.all_reduce = "nccl"; }), GpuSums::always);
  EXPECT_EQ(sums([](auto& o) { o.all_reduce = "ring"; }), GpuSums::never);
  EXPECT_EQ(sums([](auto& o) { o.gradient_precision = "bf16"; }), GpuSums::never);
  EXPECT_EQ(sums([](auto& o) { o.overlap = "off"; }), GpuSums::never);
  EXPECT_TRUE(resolved(1, [](auto& o) { o.all_reduce = "nccl"; }).is_synchronous()) << "one worker, to see its cost";
  StepOptions on_cpu;
  EXPECT_EQ(resolve(on_cpu, {.workers = 2}).distribution.gpu_sums, GpuSums::never);
  on_cpu.distribution.all_reduce = "nccl";
  EXPECT_THROW(resolve(on_cpu, {.workers = 2}), Error);
}

TEST(Distribution, StagesOnGpusSumGradientsInHostMemory) {
  StepOptions options;
  options.device = "cuda";
  options.batch_size = 8;
  options.distribution.parallel = "pipeline:2";
  EXPECT_EQ(resolve(options, {.workers = 2}).distribution.gpu_sums, GpuSums::automatic) << "of transfers";
  options.distribution.all_reduce = "nccl";
  EXPECT_THROW(resolve(options, {.workers = 2}), Error);
  options.distribution.all_reduce = "auto";
  options.distribution.parallel = "auto";
  EXPECT_THROW(resolve(options, {.workers = 2}), Error);
}

TEST(Distribution, ServersAreUsedWhereThereAreSome) {
  const DistributionConfig config = resolved(kWithServers);
  EXPECT_EQ(config.update, VariableUpdate::parameter_server);
  EXPECT_TRUE(config.uses_servers());
  EXPECT_TRUE(config.is_synchronous());
  EXPECT_FALSE(config.survives_lost_workers());
  EXPECT_EQ(config.placement, ps::Strategy::split);
  EXPECT_EQ(resolved(kWithServers, [](auto& o) { o.placement = "greedy"; }).placement, ps::Strategy::greedy);
  EXPECT_TRUE(resolved(kWithServers, [](auto& o) { o.variable_update = "distributed_replicated"; }).is_synchronous());
}

TEST(Distribution, WorkersThatWaitForNobodySurviveALoss) {
  const DistributionConfig free = resolved(kWithServers, [](auto& o) { o.asynchronous = true; });
  EXPECT_TRUE(free.asynchronous);
  EXPECT_FALSE(free.staleness);
  EXPECT_FALSE(free.is_synchronous());
  EXPECT_TRUE(free.survives_lost_workers());
  const DistributionConfig bounded = resolved(kWithServers, [](auto& o) { o.staleness = 3; });
  EXPECT_TRUE(bounded.asynchronous);
  EXPECT_EQ(bounded.staleness, 3);
  const DistributionConfig backup = resolved(kWithServers, [](auto& o) { o.backup_workers = 2; });
  EXPECT_TRUE(backup.is_synchronous());
  EXPECT_TRUE(backup.survives_lost_workers());
}

TEST(Distribution, WhatNeedsServersIsRefusedWithoutThem) {
  const std::string how = "trireme launch --ps N";
  for (const char* update : {"parameter_server", "distributed_replicated"}) {
    expect_refused(
        {.workers = 2}, [&](auto& o) { o.variable_update = update; },
        std::string("--variable-update ") + update + " needs parameter servers: " + how);
  }
  expect_refused(
      {.workers = 2}, [](auto& o) { o.placement = "greedy"; }, "--placement has no effect without");
  expect_refused(
      {.workers = 2}, [](auto& o) { o.asynchronous = true; }, "--async has no effect without");
  expect_refused(
      {.workers = 2}, [](auto& o) { o.staleness = 0; }, "--staleness has no effect without");
  expect_refused(
      {.workers = 2}, [](auto& o) { o.backup_workers = 1; }, "--backup-workers has no effect without");
}

TEST(Distribution, ServersThatNobodyUsesAreRefused) {
  for (const char* update : {"all_reduce", "independent"}) {
    expect_refused(
        kWithServers, [&](auto& o) { o.variable_update = update; },
        std::string("--variable-update ") + update + " uses no parameter servers, and there are 2; leave out --ps");
  }
  expect_refused(kWithServers, {}, "--forward-only updates nothing", true);
}

TEST(Distribution, ContradictionsAreRefused) {
  const auto refused = [](const Change& change, const std::string& part) {
    expect_refused(kWithServers, change, part);
  };
  refused([](auto& o) { o.synchronous = o.asynchronous = true; }, "--sync and --async");
  refused(
      [](auto& o) {
        o.synchronous = true;
        o.staleness = 2;
      },
      "--sync and --staleness");
  refused([](auto& o) { o.staleness = -1; }, "--staleness -1: must be a whole number from 0");
  refused([](auto& o) { o.placement = "random"; },
          "unknown placement 'random'; choose one of round_robin, greedy, split");
  refused([](auto& o) { o.backup_workers = 3; }, "--backup-workers 3: must be from 0 to 2");
  refused([](auto& o) { o.backup_workers = -1; }, "--backup-workers -1");
  refused(
      [](auto& o) {
        o.backup_workers = 1;
        o.asynchronous = true;
      },
      "--backup-workers needs synchronous training");
  refused(
      [](auto& o) {
        o.backup_workers = 1;
        o.variable_update = "distributed_replicated";
      },
      "--backup-workers needs --variable-update parameter_server");
  refused(
      [](auto& o) {
        o.asynchronous = true;
        o.variable_update = "distributed_replicated";
      },
      "leave out --async");
  refused(
      [](auto& o) {
        o.sync_batch_norm = true;
        o.staleness = 1;
      },
      "--sync-batch-norm needs workers that train in lock-step");
  refused(
      [](auto& o) {
        o.sync_batch_norm = true;
        o.backup_workers = 1;
      },
      "--sync-batch-norm waits for all");
  refused([](auto& o) { o.gradient_precision = "bf16"; }, "--gradient-precision bf16: gradients travel");
  refused([](auto& o) { o.all_reduce = "ring"; }, "--all-reduce ring has no effect");
  refused(
      [](auto& o) {
        o.asynchronous = true;
        o.check_replicas = 5;
      },
      "--check-replicas 5: workers that do not wait");
}

TEST(Distribution, SyncBatchNormSuitsAllThatIsSynchronous) {
  for (const char* update : {"auto", "distributed_replicated"}) {
    EXPECT_TRUE(resolved(kWithServers, [&](auto& o) {
                  o.sync_batch_norm = true;
                  o.variable_update = update;
                }).sync_batch_norm);
  }
}

TEST(Distribution, WorkersDecideWhatElseIsPossible) {
  StepOptions options;
  options.batch_split = "2";
  EXPECT_EQ(resolve(options, {.workers = 2}).batch_split, 2);
  options.batch_split = "auto";
  EXPECT_EQ(resolve(options, {.workers = 2}).batch_split, 1);
  EXPECT_EQ(resolve(options, {.workers = 1}).batch_split, 0);
  options.num_inter_threads = 2;
  EXPECT_EQ(resolve(options, {.workers = 2}).inter_threads, 2);
  options.num_inter_threads = 0;
  options.deterministic = true;
  EXPECT_EQ(resolve(options, {.workers = 2}).autotune, Autotune::off);
  options.distribution.all_reduce = "library";
  EXPECT_THROW(resolve(options, {.workers = 2}), Error);
  options.distribution.all_reduce = "auto";
  EXPECT_EQ(resolve(options, {.workers = 1, .servers = 1}).batch_split, 1);
  options.distribution.asynchronous = true;
  EXPECT_THROW(resolve(options, {.workers = 2, .servers = 1}), Error) << "deterministic";
}

TEST(Distribution, AnEpochIsThatOfAllWorkers) {
  StepOptions options;
  options.batch_size = 8;
  const auto alone = resolve(options, {.workers = 1}).schedule.steps_per_epoch;
  EXPECT_EQ(resolve(options, {.workers = 4}).schedule.steps_per_epoch, alone / 4);
  options.distribution.variable_update = "independent";
  EXPECT_EQ(resolve(options, {.workers = 4}).schedule.steps_per_epoch, alone);
}

TEST(Distribution, BucketsFollowTheSizeOfTheNetwork) {
  const DistributionConfig automatic = resolved(2);
  EXPECT_EQ(bucket_bytes_for(automatic, 102'000'000), 102'000'000 / 16);
  EXPECT_EQ(bucket_bytes_for(automatic, 1'000'000), 1'000'000) << "not too small";
  EXPECT_EQ(bucket_bytes_for(automatic, 532'000'000), 25'000'000) << "not too large";
  EXPECT_EQ(bucket_bytes_for(resolved(2, [](auto& o) { o.bucket_mb = "2.5"; }), 532'000'000), 2'500'000);
}

}  // namespace
}  // namespace trireme::train
