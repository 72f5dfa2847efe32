#include "trireme/report/study.hpp"

#include <gtest/gtest.h>

#include "tests/report/record_builder.hpp"

namespace trireme::report {
namespace {

using testkit::RecordBuilder;

std::vector<std::string> options_of(const Study& study) {
  std::vector<std::string> options;
  for (const Dimension& dimension : study.dimensions) options.push_back(dimension.option);
  return options;
}

TEST(Study, CellsAreWhatAStudyVaries) {
  RecordSet records;
  for (const int batch : {64, 8}) {
    for (const int threads : {2, 1}) {
      const Json cell{{"num-intra-threads", threads}, {"batch-size", batch}};
      add_runs(records,
               RecordBuilder().study("s", cell).config("batch_size", batch).config("num_intra_threads", threads),
               {100.0, 101.0});
    }
  }
  const std::vector<Study> studies = make_studies(records);
  ASSERT_EQ(studies.size(), 1U);
  const Study& study = studies[0];
  EXPECT_EQ(options_of(study), (std::vector<std::string>{"num-intra-threads", "batch-size"}));
  ASSERT_EQ(study.cells.size(), 4U);
  EXPECT_EQ(study.cells[0].label, "1 thread, batch 8");  // in the order of values, whatever order files had
  EXPECT_EQ(study.cells[3].label, "2 threads, batch 64");
  EXPECT_EQ(study.cells[0].speeds, (std::vector<double>{100, 101}));
  EXPECT_TRUE(study.warnings.empty());
}

TEST(Study, PlainRecordsAreToldApartByWhatDiffers) {
  RecordSet records;
  // Threads follow from workers here: one of the two tells cells apart.
  add_runs(records, RecordBuilder().config("workers", 1).config("num_intra_threads", 4), {100});
  add_runs(records, RecordBuilder().config("workers", 2).config("num_intra_threads", 2), {150});
  add_runs(records, RecordBuilder().config("workers", 2).config("num_intra_threads", 2).config("num_batches", 7),
           {151});
  const Study study = make_studies(records).at(0);
  EXPECT_EQ(options_of(study), std::vector<std::string>{"workers"});
  ASSERT_EQ(study.cells.size(), 2U);
  EXPECT_EQ(study.cells[1].speeds.size(), 2U);  // how long it measured makes no other cell
}

TEST(Study, WhatARunChoseByItselfIsNoSetting) {
  RecordSet records;
  add_runs(records, RecordBuilder().config("batch_split", 1), {100});
  add_runs(records, RecordBuilder().config("batch_split", 2), {101});
  EXPECT_EQ(make_studies(records).at(0).cells.size(), 1U);
}

TEST(Study, WaysToShareANetworkAreToldApartByTheirNames) {
  const auto run = [](const std::string& parallel, const std::string& schedule, int micro_batches) {
    return RecordBuilder()
        .study("s", {{"parallel", parallel}})
        .config("parallel", parallel)
        .config("schedule", schedule)
        .config("micro_batches", micro_batches);
  };
  RecordSet records;
  add_runs(records, run("data", "auto", 0), {100});
  add_runs(records, run("pipeline:2", "1f1b", 8), {110});
  add_runs(records, run("hybrid:3-1", "1f1b", 12), {120});
  add_runs(records, run("auto", "1f1b", 8), {120});
  add_runs(records, run("auto", "zb-h1", 4), {121});  // another choice: the same setting
  const Study study = make_studies(records).at(0);
  EXPECT_EQ(options_of(study), std::vector<std::string>{"parallel"});
  std::vector<std::string> labels;
  for (const Cell& cell : study.cells) labels.push_back(cell.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"data", "pipeline:2", "hybrid:3-1", "auto"}));
  EXPECT_TRUE(study.warnings.empty());

  RecordSet given;
  for (const char* schedule : {"gpipe", "zb-h1"}) {
    const Json cell{{"schedule", schedule}, {"micro-batches", 8}};
    add_runs(given, run("pipeline:2", schedule, 8).study("s", cell).given({"parallel", "schedule", "micro-batches"}),
             {100});
  }
  EXPECT_EQ(make_studies(given).at(0).cells[1].label, "schedule zb-h1");
  EXPECT_EQ(setting_text("micro-batches", 8), "8 micro-batches");
}

TEST(Study, WhatTheUserHasGivenIsASetting) {
  RecordSet records;
  add_runs(records, RecordBuilder().config("batch_split", 1).given({"model", "batch-split"}), {100});
  add_runs(records, RecordBuilder().config("batch_split", 2).given({"model", "batch-split"}), {101});
  EXPECT_EQ(make_studies(records).at(0).cells.size(), 2U);
}

TEST(Study, RepeatsOfOneRunAreItsSamples) {
  RecordSet records;
  records.runs.push_back(RecordBuilder().speed(100, {99, 100, 101}).run());
  const Study study = make_studies(records).at(0);
  EXPECT_EQ(study.cells[0].speeds, (std::vector<double>{99, 100, 101}));
  EXPECT_TRUE(study.cells[0].is_one_run());
  EXPECT_EQ(study.cells[0].run_speeds(), std::vector<double>{100});  // one process, one sample of a test
}

TEST(Study, MachinesAreNeverMixed) {
  RecordSet records;
  add_runs(records, RecordBuilder().study("s", {{"batch-size", 32}}), {100, 101});
  add_runs(records, RecordBuilder().study("s", {{"batch-size", 32}}).host("node2"), {200, 201});
  const Study study = make_studies(records).at(0);
  ASSERT_EQ(study.cells.size(), 2U);
  EXPECT_FALSE(are_comparable(study.cells[0], study.cells[1]));
  ASSERT_EQ(study.warnings.size(), 1U);
  EXPECT_NE(study.warnings[0].find("2 machines"), std::string::npos);
}

TEST(Study, AMachinesGpuIsComparedWithItsCpu) {
  RecordSet records;
  add_runs(records, RecordBuilder().study("s", {{"device", "cpu"}}).config("device", "cpu"), {100, 101});
  add_runs(records, RecordBuilder().study("s", {{"device", "cuda"}}).gpu("cuda:0 (A)"), {900, 901});
  const Study study = make_studies(records).at(0);
  ASSERT_EQ(study.cells.size(), 2U);
  EXPECT_TRUE(are_comparable(study.cells[0], study.cells[1]));
  EXPECT_TRUE(study.warnings.empty());
}

TEST(Study, GpusAreNeverMixed) {
  RecordSet records;
  add_runs(records, RecordBuilder().study("s", {{"device", "cpu"}}).config("device", "cpu"), {100, 101});
  add_runs(records, RecordBuilder().study("s", {{"device", "cuda"}}).gpu("cuda:0 (A)"), {900, 901});
  add_runs(records, RecordBuilder().study("s", {{"device", "cuda"}}).gpu("cuda:0 (B)"), {500, 501});
  const Study study = make_studies(records).at(0);
  ASSERT_EQ(study.cells.size(), 3U);
  EXPECT_TRUE(are_comparable(study.cells[0], study.cells[1]));
  EXPECT_TRUE(are_comparable(study.cells[0], study.cells[2]));
  EXPECT_FALSE(are_comparable(study.cells[1], study.cells[2]));
  ASSERT_EQ(study.warnings.size(), 1U);
  EXPECT_NE(study.warnings[0].find("2 gpus"), std::string::npos) << study.warnings[0];
}

TEST(Study, BuildsAreNeverMixed) {
  RecordSet records;
  add_runs(records, RecordBuilder(), {100});
  add_runs(records, RecordBuilder().commit("def456"), {200});
  const Study study = make_studies(records).at(0);
  EXPECT_EQ(study.cells.size(), 2U);
  EXPECT_NE(study.warnings.at(0).find("2 builds"), std::string::npos);
}

TEST(Study, ModelsInOneCellAreShownApart) {  // two folders of a study of the same name
  RecordSet records;
  add_runs(records, RecordBuilder().study("s", {{"batch-size", 32}}), {100});
  add_runs(records, RecordBuilder().study("s", {{"batch-size", 32}}).config("model", "vgg11"), {20});
  const Study study = make_studies(records).at(0);
  EXPECT_EQ(study.cells.size(), 2U);
  EXPECT_NE(study.warnings.at(0).find("model"), std::string::npos);
}

TEST(Study, OtherFixedOptionsInOneCellAreShownApart) {  // two folders of a plan that was changed in between
  const auto cell = [](const char* format, const char* optimizer) {
    return RecordBuilder()
        .study("s", {{"batch-size", 32}})
        .config("data_format", format)
        .config("optimizer", optimizer);
  };
  RecordSet records;
  add_runs(records, cell("nchw", "momentum").config("seed", 1), {100, 101});
  add_runs(records, cell("nhwc", "adam").config("seed", 2), {200, 201});
  const Study study = make_studies(records).at(0);
  ASSERT_EQ(study.cells.size(), 2U);
  EXPECT_EQ(study.cells[0].label, "data-format nchw");
  ASSERT_EQ(study.warnings.size(), 1U);
  EXPECT_NE(study.warnings[0].find("differ in data-format, optimizer:"), std::string::npos) << study.warnings[0];
}

TEST(Study, DefaultsOfABuildBelongToIt) {
  RecordSet records;
  add_runs(records, RecordBuilder().config("data_format", "nchw"), {100});
  add_runs(records, RecordBuilder().config("data_format", "nhwc").commit("def456"), {200});
  add_runs(records, RecordBuilder().config("data_format", "nhwc").config("new_option", 3).commit("def456"), {200});
  const Study study = make_studies(records).at(0);
  EXPECT_EQ(options_of(study), std::vector<std::string>{"build"});
  EXPECT_EQ(study.cells.size(), 2U);
}

TEST(Study, AnUnknownMachineIsAnotherMachine) {
  RecordSet records;
  add_runs(records, RecordBuilder(), {100, 101});
  add_runs(records, RecordBuilder().no_machine(), {50, 51});
  const Study study = make_studies(records).at(0);
  ASSERT_EQ(study.cells.size(), 2U);
  EXPECT_FALSE(are_comparable(study.cells[0], study.cells[1]));
}

TEST(Study, TheSameWorkersOnOtherHostsAreShownApart) {
  const auto two = [](const std::vector<std::string>& hosts) {
    return RecordBuilder().study("s", {{"workers", 2}}).config("workers", 2).cluster(hosts);
  };
  RecordSet records;
  add_runs(records, two({"node1", "node1"}), {100, 101});
  add_runs(records, two({"node1", "node2"}), {150, 151});
  const Study study = make_studies(records).at(0);
  ASSERT_EQ(study.cells.size(), 2U);
  EXPECT_EQ(study.cells[1].label, "hosts node1 + node2");
  EXPECT_EQ(study.warnings.size(), 1U);
}

TEST(Study, ScalingOverHostsIsOneStudy) {  // more workers have more hosts: no other setting
  RecordSet records;
  add_runs(records, RecordBuilder().study("s", {{"workers", 1}}).config("workers", 1).cluster({"node1"}), {100});
  add_runs(records, RecordBuilder().study("s", {{"workers", 2}}).config("workers", 2).cluster({"node1", "node2"}),
           {190});
  const Study study = make_studies(records).at(0);
  EXPECT_EQ(options_of(study), std::vector<std::string>{"workers"});
  EXPECT_TRUE(study.warnings.empty());
}

TEST(Study, VersionsOfAnotherFrameworkAreFrameworks) {
  const auto cell = [] { return RecordBuilder().study("s", {{"batch-size", 32}}); };
  RecordSet records;
  add_runs(records, cell(), {100, 101});
  add_runs(records, cell().framework("pytorch").version("1.13"), {60, 61});
  add_runs(records, cell().framework("pytorch").version("2.1"), {80, 81});
  const Study study = make_studies(records).at(0);
  ASSERT_EQ(study.cells.size(), 3U);
  EXPECT_EQ(study.cells[1].label, "pytorch 1.13");
  EXPECT_EQ(study.cells[2].label, "pytorch 2.1");
  ASSERT_EQ(study.warnings.size(), 1U);
  EXPECT_NE(study.warnings[0].find("2 versions of pytorch (1.13; 2.1)"), std::string::npos);
}

TEST(Study, FailedRunsAreKeptApart) {
  RecordSet records;
  add_runs(records, RecordBuilder().study("s", {{"batch-size", 32}}), {100});
  records.runs.push_back(RecordBuilder().study("s", {{"batch-size", 4096}}).error("out of memory").run());
  const Study study = make_studies(records).at(0);
  EXPECT_EQ(study.cells.size(), 1U);
  EXPECT_EQ(study.failed.size(), 1U);
}

TEST(Study, NamesGiveStudies) {
  RecordSet records;
  add_runs(records, RecordBuilder().study("one", {{"batch-size", 32}}), {100});
  add_runs(records, RecordBuilder().study("two", {{"batch-size", 32}}), {100});
  add_runs(records, RecordBuilder(), {100});
  records.plans["one"] = {
      .name = "one", .title = "The first", .question = "Why?", .source = "", .figure = "bars", .varied = {}};
  const std::vector<Study> studies = make_studies(records);
  ASSERT_EQ(studies.size(), 3U);
  EXPECT_EQ(studies[0].title, "The first");
  EXPECT_EQ(studies[0].kind, "bars");
  EXPECT_EQ(studies[1].title, "two");
}

TEST(StudyText, SlugsAreSafeInNamesOfFiles) {
  EXPECT_EQ(slug("SP against MP: 2 × 1"), "sp-against-mp-2-1");
  EXPECT_EQ(slug("../<script>"), "script");
  EXPECT_EQ(slug("∞"), "x");
}

}  // namespace
}  // namespace trireme::report
