#include "trireme/report/baseline.hpp"

#include <gtest/gtest.h>

#include "tests/report/record_builder.hpp"
#include "trireme/base/error.hpp"
#include "trireme/report/finding_text.hpp"

namespace trireme::report {
namespace {

using testkit::about;
using testkit::RecordBuilder;

RecordBuilder batch(int size, const std::string& commit) {
  return RecordBuilder().study("b", {{"batch-size", size}}).config("batch_size", size).commit(commit);
}

struct Sides {
  RecordSet before, after;

  void add(int size, const std::vector<double>& old_speeds, const std::vector<double>& new_speeds) {
    add_runs(before, batch(size, "old"), old_speeds);
    add_runs(after, batch(size, "new"), new_speeds);
  }
  BaselineComparison compare(bool must_match = true) const { return compare_with_baseline(before, after, must_match); }
};

TEST(Baseline, SlowerCellsAreFoundByTheTest) {
  Sides sides;
  sides.add(8, about(100), about(100.1));
  sides.add(16, about(200), about(180));
  sides.add(32, about(300), about(330));
  const BaselineComparison comparison = sides.compare();
  ASSERT_EQ(comparison.changes.size(), 3U);
  EXPECT_EQ(comparison.changes[0].comparison.verdict, perf::Verdict::no_difference_shown);
  EXPECT_EQ(comparison.changes[1].comparison.verdict, perf::Verdict::smaller);
  EXPECT_EQ(comparison.changes[2].comparison.verdict, perf::Verdict::larger);
  EXPECT_NEAR(comparison.changes[1].comparison.p, 3 * 2.0 / 252, 1e-12);
  const std::vector<std::string> slower = regressions(comparison, 0.05);
  ASSERT_EQ(slower.size(), 1U);
  EXPECT_EQ(slower[0], "batch 16: 0.900x (p = 0.024)");
  EXPECT_TRUE(regressions(comparison, 0.15).empty());
  EXPECT_TRUE(comparison.warnings.empty());
}

TEST(Baseline, NoiseIsNoRegression) {
  Sides sides;
  sides.add(8, {100, 120, 101, 118, 104}, {80, 122, 96, 110, 119});
  EXPECT_LT(sides.compare().changes[0].comparison.ratio, 1.06);
  EXPECT_TRUE(regressions(sides.compare(), 0).empty());
}

TEST(Baseline, TooFewRunsFailNoGateAndSaySo) {
  Sides sides;
  sides.add(8, {100, 101, 102}, {50, 51, 52});
  const BaselineComparison comparison = sides.compare();
  EXPECT_TRUE(regressions(comparison, 0.05).empty());
  EXPECT_TRUE(is_blind(comparison));
  const Document document = make_baseline_document(comparison, sides.after);
  ASSERT_EQ(document.findings.size(), 1U);
  EXPECT_NE(text_of(document.findings[0]).find("not enough runs to tell"), std::string::npos);
}

TEST(Baseline, ManyCellsTogetherShowWhatNoneShowsAlone) {
  Sides sides;
  for (int size = 1; size <= 8; ++size) sides.add(size, {100, 101, 102}, {90, 91, 92});
  const BaselineComparison comparison = sides.compare();
  EXPECT_TRUE(is_blind_to_cells(comparison));
  EXPECT_FALSE(is_blind(comparison));
  EXPECT_LT(comparison.overall.p, 0.001);
  const std::vector<std::string> slower = regressions(comparison, 0.05);
  ASSERT_EQ(slower.size(), 1U);
  EXPECT_NE(slower[0].find("all 8 configurations together: 0.901x"), std::string::npos) << slower[0];
}

TEST(Baseline, OneLeapDoesNotHideThatTheRestIsSlower) {  // nor does the rest make the mean a loss
  Sides sides;
  for (int size = 1; size <= 10; ++size) sides.add(size, about(100), about(size == 1 ? 1000 : 97));
  const BaselineComparison comparison = sides.compare();
  EXPECT_GT(comparison.overall.ratio, 1.2);
  EXPECT_LT(comparison.overall.p, 0.001);
  EXPECT_EQ(comparison.overall.verdict, perf::Verdict::no_difference_shown);
  const Document document = make_baseline_document(comparison, sides.after);
  EXPECT_EQ(document.findings[0].kind, Finding::Kind::not_shown);
  EXPECT_NE(text_of(document.findings[0]).find("medians and ranks disagree"), std::string::npos)
      << text_of(document.findings[0]);
}

TEST(Baseline, WhatFailsNowIsBroken) {
  Sides sides;
  sides.add(8, about(100), about(100));
  sides.add(16, about(100), {100, 101});
  add_runs(sides.before, batch(32, "old"), about(100));
  add_runs(sides.before, batch(64, "old"), about(100));
  for (int i = 0; i < 3; ++i) sides.after.runs.push_back(batch(16, "new").error("out of memory\nmore").run());
  for (int i = 0; i < 5; ++i) sides.after.runs.push_back(batch(32, "new").error("crash").run());
  sides.after.runs.push_back(batch(128, "new").error("never worked").run());
  const BaselineComparison comparison = sides.compare();
  EXPECT_EQ(comparison.broken, (std::vector<std::string>{"batch 16: 3 runs failed, none before: out of memory",
                                                         "batch 32: measured before, not now (5 runs failed: crash)",
                                                         "batch 64: measured before, not now"}));
  EXPECT_EQ(make_baseline_document(comparison, sides.after).findings[0].kind, Finding::Kind::worse);
}

TEST(Baseline, WhatFailedBeforeTooIsNotBroken) {
  Sides sides;
  sides.add(8, about(100), about(100));
  sides.before.runs.push_back(batch(8, "old").error("now and then").run());
  sides.after.runs.push_back(batch(8, "new").error("now and then").run());
  EXPECT_TRUE(sides.compare().broken.empty());
}

TEST(Baseline, OptionsThatDifferFromSideToSideAreNamed) {
  Sides sides;
  add_runs(sides.before, batch(8, "old").config("protocol", "grpc").config("seed", 1), about(100));
  add_runs(sides.after, batch(8, "new").config("protocol", "mpi").config("seed", 2).config("new_option", 1), about(80));
  const BaselineComparison comparison = sides.compare();
  EXPECT_EQ(comparison.changes.size(), 1U);
  ASSERT_EQ(comparison.warnings.size(), 1U);
  EXPECT_NE(comparison.warnings[0].find("the two sides differ in protocol (grpc, now mpi)."), std::string::npos)
      << comparison.warnings[0];
}

TEST(Baseline, OptionsThatVaryOnASideAreMatched) {
  Sides sides;
  for (const char* protocol : {"grpc", "mpi"}) {
    add_runs(sides.before, batch(8, "old").config("protocol", protocol), about(100));
    add_runs(sides.after, batch(8, "new").config("protocol", protocol), about(100));
  }
  EXPECT_EQ(sides.compare().changes.size(), 2U);
}

TEST(Baseline, AnUnknownMachineIsRefusedByAGate) {
  Sides sides;
  add_runs(sides.before, batch(8, "old"), about(100));
  add_runs(sides.after, batch(8, "new").no_machine(), about(50));
  EXPECT_THROW(sides.compare(true), Error);
  EXPECT_EQ(sides.compare(false).warnings.size(), 1U);
  Sides neither;
  add_runs(neither.before, batch(8, "old").no_machine(), about(100));
  add_runs(neither.after, batch(8, "new").no_machine(), about(50));
  EXPECT_THROW(neither.compare(true), Error);
  EXPECT_EQ(neither.compare(false).warnings.size(), 1U);
}

TEST(Baseline, MoreHostsAreOtherHardware) {
  Sides sides;
  add_runs(sides.before, batch(8, "old").config("workers", 2).cluster({"node1", "node1"}), about(100));
  add_runs(sides.after, batch(8, "new").config("workers", 2).cluster({"node1", "node2"}), about(50));
  EXPECT_THROW(sides.compare(true), Error);
  EXPECT_EQ(sides.compare(false).warnings.size(), 1U);
}

TEST(Baseline, BuildsMixedOnASideAreNamed) {
  Sides sides;
  sides.add(8, about(100), about(100));
  add_runs(sides.before, batch(8, "older"), about(100));
  ASSERT_EQ(sides.compare().warnings.size(), 1U);
  EXPECT_NE(sides.compare().warnings[0].find("The old side mixes runs of 2 builds"), std::string::npos);
}

TEST(Baseline, RepeatsOfOneProcessShowNothing) {
  Sides sides;
  sides.before.runs.push_back(batch(8, "old").speed(100, {99, 100, 101, 102, 98}).run());
  sides.after.runs.push_back(batch(8, "new").speed(50, {49, 50, 51, 52, 48}).run());
  EXPECT_TRUE(is_blind(sides.compare()));
}

TEST(Baseline, OtherHardwareIsRefusedByAGateAndWarnedOfOtherwise) {
  Sides sides;
  add_runs(sides.before, batch(8, "old"), about(100));
  Json other = batch(8, "new").json();
  other["machine"]["cpu"] = "Another CPU";
  sides.after.runs.push_back(read_run(other, "x.json"));
  EXPECT_THROW(sides.compare(true), Error);
  ASSERT_EQ(sides.compare(false).warnings.size(), 1U);
  EXPECT_NE(sides.compare(false).warnings[0].find("Another CPU"), std::string::npos);
}

TEST(Baseline, AMachineAndItsGpuAreTheSameHardwareOnBothSides) {
  const auto on = [](const char* build, const char* gpu) {
    RecordBuilder run = batch(8, build);
    return *gpu == 0 ? run.config("device", "cpu") : run.gpu(gpu);
  };
  Sides sides;
  for (const char* gpu : {"", "cuda:0 (A)"}) {
    add_runs(sides.before, on("old", gpu), about(100));
    add_runs(sides.after, on("new", gpu), about(100));
  }
  for (const std::string& warning : sides.compare(true).warnings)
    EXPECT_EQ(warning.find("hardware"), std::string::npos) << warning;
  add_runs(sides.after, on("new", "cuda:0 (B)"), about(100));
  EXPECT_THROW(sides.compare(true), Error);
}

TEST(Baseline, AnotherHostOfTheSameKindIsAWarning) {
  Sides sides;
  add_runs(sides.before, batch(8, "old"), about(100));
  add_runs(sides.after, batch(8, "new").host("node2"), about(100));
  EXPECT_EQ(sides.compare(true).warnings.size(), 1U);
}

TEST(Baseline, CellsOfOneSideAreNotCompared) {
  Sides sides;
  sides.add(8, about(100), about(100));
  add_runs(sides.after, batch(16, "new"), about(100));
  const BaselineComparison comparison = sides.compare();
  EXPECT_EQ(comparison.changes.size(), 1U);
  ASSERT_EQ(comparison.warnings.size(), 1U);
  EXPECT_NE(comparison.warnings[0].find("batch 16 is on one side only (new)"), std::string::npos);
}

TEST(Baseline, NothingInCommonIsAnError) {
  Sides sides;
  add_runs(sides.before, batch(8, "old"), about(100));
  add_runs(sides.after, batch(16, "new"), about(100));
  EXPECT_THROW(sides.compare(), Error);
}

TEST(Baseline, DocumentHasTheChangesAndTheirTests) {
  Sides sides;
  sides.add(8, about(100), about(80));
  sides.add(16, about(100), about(130));
  const Document document = make_baseline_document(sides.compare(), sides.after);
  const Figure& figure = document.sections.at(0).figures.at(0);
  EXPECT_NEAR(figure.series[0].points[0].y, -20, 1e-9);
  EXPECT_NEAR(figure.series[0].points[1].y, 30, 1e-9);
  EXPECT_EQ(figure.table.rows.size(), 2U);
  EXPECT_EQ(figure.table.rows[0][9].text, "slower");
  ASSERT_GE(document.findings.size(), 3U);
  EXPECT_NE(text_of(document.findings[1]).find("batch 8 got slower: 0.800x (p = 0.016"), std::string::npos)
      << text_of(document.findings[1]);
}

}  // namespace
}  // namespace trireme::report
