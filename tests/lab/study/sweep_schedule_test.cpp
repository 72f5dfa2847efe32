#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "cli/study_plans.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"
#include "trireme/lab/study/schedule.hpp"
#include "trireme/lab/study/study_folder.hpp"

namespace trireme::lab {
namespace {

TEST(Schedule, EveryRoundHasAllCellsOnce) {
  const auto schedule = make_schedule(10, 3, 1);
  ASSERT_EQ(schedule.size(), 30u);
  for (int round = 0; round < 3; ++round) {
    std::set<std::size_t> cells;
    for (int i = 0; i < 10; ++i) {
      const ScheduledRun& run = schedule[10 * round + i];
      EXPECT_EQ(run.repeat, round + 1);
      cells.insert(run.cell);
    }
    EXPECT_EQ(cells.size(), 10u);
  }
}

TEST(Schedule, RoundsAreShuffledByTheSeed) {
  const auto cells_of_round = [](const std::vector<ScheduledRun>& schedule, std::size_t round) {
    std::vector<std::size_t> cells;
    for (std::size_t i = 0; i < 10; ++i) cells.push_back(schedule[10 * round + i].cell);
    return cells;
  };
  const auto schedule = make_schedule(10, 2, 1);
  EXPECT_EQ(schedule, make_schedule(10, 2, 1));
  EXPECT_NE(schedule, make_schedule(10, 2, 2));
  EXPECT_NE(cells_of_round(schedule, 0), cells_of_round(schedule, 1));
  const auto first = cells_of_round(schedule, 0);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
}

TEST(Schedule, MoreRepeatsOnlyAddRounds) {
  const auto few = make_schedule(5, 2, 1), more = make_schedule(5, 4, 1);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), more.begin()));
}

TEST(ExpectedSeconds, IsTheMedianOfTheCellOrElseOfAll) {
  std::vector<CellState> cells(3);
  EXPECT_FALSE(expected_seconds(cells, 0));
  cells[0].seconds = {1, 9, 2};
  cells[1].seconds = {4};
  EXPECT_EQ(expected_seconds(cells, 0), 2);
  EXPECT_EQ(expected_seconds(cells, 1), 4);
  EXPECT_EQ(expected_seconds(cells, 2), 3) << "of 1, 2, 4 and 9";
}

std::vector<StudyCell> two_cells() {
  return {{.varied = Json({{"workers", 1}, {"mode", "SP"}}), .configuration = {}, .slug = "a"},
          {.varied = Json({{"workers", 2}, {"mode", "MP"}}), .configuration = {}, .slug = "b"}};
}

TEST(SweepOutput, TheTableHasMediansAndSpreads) {
  SweepResult result;
  result.cells.resize(2);
  result.cells[0].images_per_second = {10, 12, 11};
  result.cells[1].images_per_second = {20};
  result.cells[1].failures = 1;
  result.cells[1].error = "no room";
  EXPECT_EQ(
      cli::result_table(two_cells(), result),
      "workers  mode  images/sec  spread  runs  failures\n"
      "-------  ----  ----------  ------  ----  --------\n"
      "1        SP         11.00  18.2 %     3         0\n"
      "2        MP         20.00       -     1         1\n"
      "images/sec: of all workers together, the median of the runs; spread: from the slowest run to the fastest\n");
  EXPECT_EQ(cli::shortfall_text(two_cells(), result), "failed: workers=2 mode=MP: no room\n");
}

TEST(SweepOutput, WhatWasLeftOutIsNamed) {
  SweepResult result;
  result.cells.resize(2);
  result.cells[0].images_per_second = {10};
  result.left_out = {{1, 1}, {0, 2}, {1, 2}};
  EXPECT_EQ(cli::shortfall_text(two_cells(), result),
            "left out for lack of time (--budget): 3 runs\n  never measured: workers=2 mode=MP\n");
}

TEST(SweepOutput, TheBarHasTheTimeLeft) {
  const SweepProgress progress{.runs_done = 3, .runs_planned = 6, .seconds_left = 90, .knows_seconds = true};
  EXPECT_EQ(cli::bar_text(progress, "workers=1", 4.4),
            "[###############...............] 3 of 6 runs, about 1m30s left; workers=1, 4s");
}

TEST(StudyFolder, IsHeldByOneAndCleansUp) {
  const testkit::TemporaryFolder folder;
  {
    const StudyFolder study(folder / "study");
    try {
      const StudyFolder second(folder / "study");
      ADD_FAILURE() << "two hold the same folder";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      EXPECT_NE(std::string(error.what()).find("another study (process " + std::to_string(getpid()) + ")"),
                std::string::npos);
    }
    record::RunRecord record;
    record.started = "now";
    study.write_run({"a", 1}, record);
    std::ofstream(folder / "study/runs/a.r2.json.123-0.tmp") << "half";
    std::ofstream(folder / "study/runs/a.r3.json") << "{ half";
  }
  const StudyFolder study(folder / "study");
  ASSERT_TRUE(read_run(study.path(), {"a", 1}));
  EXPECT_EQ(read_run(study.path(), {"a", 1})->started, "now");
  EXPECT_FALSE(read_run(study.path(), {"a", 2}));
  EXPECT_FALSE(read_run(study.path(), {"a", 3}));
  EXPECT_FALSE(std::filesystem::exists(folder / "study/runs/a.r2.json.123-0.tmp"));
}

TEST(StudyFolder, LeavesFoldersOfOthersAlone) {
  const testkit::TemporaryFolder folder;
  std::ofstream(folder / "letter") << "dear";
  EXPECT_THROW(StudyFolder(folder.path()), Error);
  EXPECT_THROW(StudyFolder(folder.path() / "letter"), Error);
  EXPECT_FALSE(std::filesystem::exists(folder / "lock"));
}

}  // namespace
}  // namespace trireme::lab
