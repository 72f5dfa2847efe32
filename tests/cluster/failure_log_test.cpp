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

}  // namespace
}  // namespace trireme::cluster
