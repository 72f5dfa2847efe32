#include "trireme/cluster/failure_log.hpp"

#include <gtest/gtest.h>

namespace trireme::cluster {
namespace {

Failure failure(Cause cause, int task, const std::string& what, int code = 1) {
  return {.cause = cause, .task = task, .who = "rank " + std::to_string(task), .what = what, .exit_code = code};
}

TEST(FailureLog, ADeathOutranksWhatPeersSayOfIt) {
  FailureLog log;
  log.add(failure(Cause::error, 0, ": lost rank 2"));
  log.add(failure(Cause::killed, 2, " was killed", 137));
  log.add(failure(Cause::starter_ended, -1, " ended"));
  log.settle();
  EXPECT_EQ(log.first().task, 2);
  EXPECT_EQ(log.others(), std::vector<std::string>{"rank 0: lost rank 2"});
  log.add(failure(Cause::not_started, 1, " late"));  // what is first stays so
  EXPECT_EQ(log.first().task, 2);
}

TEST(FailureLog, OfEqualCausesTheEarlierIsFirst) {
  FailureLog log;
  log.add(failure(Cause::error, 3, ": diverged"));
  log.add(failure(Cause::error, 1, ": lost rank 3"));
  log.settle();
  EXPECT_EQ(log.first().task, 3);
}

TEST(FailureLog, TheEndAfterTheWordsIsNoNews) {
  FailureLog log;
  log.add(failure(Cause::error, 0, ": no such model", 2));
  log.add(failure(Cause::error, 0, " ended with exit code 1", 1));
  log.settle();
  EXPECT_EQ(log.first().what, ": no such model");
  EXPECT_EQ(log.first().exit_code, 2);
}

TEST(FailureLog, RepetitionsAreLeftOutAndManyAreCut) {
  FailureLog log;
  log.add(failure(Cause::error, 0, ": the same"));
  log.add(failure(Cause::error, 1, ": the same"));
  for (int task = 2; task < 8; ++task) log.add(failure(Cause::error, task, ": " + std::string(1000, 'x')));
  log.settle();
  const auto others = log.others();
  ASSERT_EQ(others.size(), 4U);
  EXPECT_LT(others[0].size(), 200U);
  EXPECT_EQ(others[3], "and 3 more");
}

JobDescription job_of(int workers, int servers) {
  JobDescription job;
  for (int i = 0; i < workers; ++i) job.tasks.push_back({.role = kWorkerRole, .index = i});
  for (int i = 0; i < servers; ++i) job.tasks.push_back({.role = kServerRole, .index = i});
  job.survives_lost_workers = true;
  return job;
}

Failure failure(Cause cause, int task, int code = 1) {
  return {.cause = cause, .task = task, .who = "", .what = "", .exit_code = code};
}

TEST(Survival, AWorkerIsLostAsLongAsAnotherIsLeft) {
  const JobDescription job = job_of(3, 1);
  EXPECT_TRUE(survives(job, {failure(Cause::killed, 0)}, {}));
  EXPECT_TRUE(survives(job, {failure(Cause::error, 1), failure(Cause::lost, 2)}, {}));
  EXPECT_TRUE(survives(job, {failure(Cause::killed, 0)}, {1}));
  EXPECT_FALSE(survives(job, {failure(Cause::killed, 0)}, {1, 2}));
  EXPECT_FALSE(survives(job_of(1, 2), {failure(Cause::killed, 0)}, {})) << "servers alone";
}

TEST(Survival, NotWithFewerThanTheLeast) {
  JobDescription job = job_of(4, 0);
  job.least_workers = 2;
  EXPECT_TRUE(survives(job, {failure(Cause::killed, 1), failure(Cause::killed, 3)}, {}));
  EXPECT_FALSE(survives(job, {failure(Cause::killed, 1)}, {2, 3}));
  EXPECT_EQ(workers_left(job, {failure(Cause::killed, 1)}, {2, 3}), 1);
  EXPECT_FALSE(survives(job, {failure(Cause::error, 1)}, {})) << "it may come from the data";
}

TEST(Survival, WhoKeepsTheResultsIsNeverLost) {
  JobDescription job = job_of(3, 1);
  job.needs_first_worker = true;
  EXPECT_FALSE(survives(job, {failure(Cause::killed, 0)}, {}));
  EXPECT_FALSE(survives(job, {failure(Cause::killed, 1), failure(Cause::lost, 0)}, {}));
  EXPECT_TRUE(survives(job, {failure(Cause::killed, 1)}, {}));
}

TEST(Survival, AServerIsNeverLost) {
  const JobDescription job = job_of(2, 2);
  EXPECT_FALSE(survives(job, {failure(Cause::killed, 2)}, {}));
  EXPECT_FALSE(survives(job, {failure(Cause::error, 0), failure(Cause::killed, 3)}, {}));
}

TEST(Survival, WhatConcernsAllEndsAll) {
  const JobDescription job = job_of(3, 0);
  EXPECT_FALSE(survives(job, {failure(Cause::starter_ended, -1)}, {}));
  EXPECT_FALSE(survives(job, {failure(Cause::not_started, 1)}, {}));
  EXPECT_FALSE(survives(job, {failure(Cause::error, 1, 2)}, {})) << "wrong input";
  EXPECT_FALSE(survives(job, {failure(Cause::error, 1, 3)}, {})) << "the machine lacks something";
}

TEST(Survival, OnlyWhereTheJobSaysSo) {
  JobDescription job = job_of(3, 1);
  job.survives_lost_workers = false;
  EXPECT_FALSE(survives(job, {failure(Cause::killed, 0)}, {}));
}

}  // namespace
}  // namespace trireme::cluster
