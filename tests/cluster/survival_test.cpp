#include "trireme/cluster/survival.hpp"

#include <gtest/gtest.h>

namespace trireme::cluster {
namespace {

Job job_of(int workers, int servers) {
  Job job;
  for (int i = 0; i < workers; ++i) job.tasks.push_back({.role = kWorkerRole, .index = i});
  for (int i = 0; i < servers; ++i) job.tasks.push_back({.role = kServerRole, .index = i});
  job.survives_lost_workers = true;
  return job;
}

Failure failure(Cause cause, int task, int code = 1) {
  return {.cause = cause, .task = task, .who = "", .what = "", .exit_code = code};
}

TEST(Survival, AWorkerIsLostAsLongAsAnotherIsLeft) {
  const Job job = job_of(3, 1);
  EXPECT_TRUE(survives(job, {failure(Cause::killed, 0)}, {}));
  EXPECT_TRUE(survives(job, {failure(Cause::error, 1), failure(Cause::lost, 2)}, {}));
  EXPECT_TRUE(survives(job, {failure(Cause::killed, 0)}, {1}));
  EXPECT_FALSE(survives(job, {failure(Cause::killed, 0)}, {1, 2}));
  EXPECT_FALSE(survives(job_of(1, 2), {failure(Cause::killed, 0)}, {})) << "servers alone";
}

TEST(Survival, WhoKeepsTheResultsIsNeverLost) {
  Job job = job_of(3, 1);
  job.needs_first_worker = true;
  EXPECT_FALSE(survives(job, {failure(Cause::killed, 0)}, {}));
  EXPECT_FALSE(survives(job, {failure(Cause::killed, 1), failure(Cause::lost, 0)}, {}));
  EXPECT_TRUE(survives(job, {failure(Cause::killed, 1)}, {}));
}

TEST(Survival, AServerIsNeverLost) {
  const Job job = job_of(2, 2);
  EXPECT_FALSE(survives(job, {failure(Cause::killed, 2)}, {}));
  EXPECT_FALSE(survives(job, {failure(Cause::error, 0), failure(Cause::killed, 3)}, {}));
}

TEST(Survival, WhatConcernsAllEndsAll) {
  const Job job = job_of(3, 0);
  EXPECT_FALSE(survives(job, {failure(Cause::starter_ended, -1)}, {}));
  EXPECT_FALSE(survives(job, {failure(Cause::not_started, 1)}, {}));
  EXPECT_FALSE(survives(job, {failure(Cause::error, 1, 2)}, {})) << "wrong input";
  EXPECT_FALSE(survives(job, {failure(Cause::error, 1, 3)}, {})) << "the machine lacks something";
}

TEST(Survival, OnlyWhereTheJobSaysSo) {
  Job job = job_of(3, 1);
  job.survives_lost_workers = false;
  EXPECT_FALSE(survives(job, {failure(Cause::killed, 0)}, {}));
}

}  // namespace
}  // namespace trireme::cluster
