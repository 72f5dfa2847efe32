#include "trireme/record/run_record.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"

namespace trireme::record {
namespace {

namespace fs = std::filesystem;

class RunRecordFile : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }
  static Json read(const std::string& path) {
    std::ifstream file(path);
    return Json::parse(file);
  }

  trireme::testkit::TemporaryFolder folder_;
};

ErrorKind kind_of_check(const std::string& path) {
  try {
    check_writable(path);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("record"), std::string::npos);
    return error.kind();
  }
  ADD_FAILURE() << path << " was taken for writable";
  return ErrorKind::failed;
}

RunRecord example() {
  RunRecord record;
  record.command = {"trireme", "bench"};
  record.started = rfc3339(std::chrono::system_clock::time_point(std::chrono::seconds(1714566600)));
  record.build = {{"version", "0.1.0"}};
  record.machine.host = "here";
  record.config = {{"model", "resnet50"}};
  record.cluster = {{.role = "worker", .index = 0, .host = "here", .cores = {0, 1}}};
  record.steps = {{{0.5, 0.25}, {0.125}}};
  record.losses = {{{7.5, 7.25}, {7.0}}};
  record.results.images_per_second = 32.0;
  record.results.breakdown.push_back(
      {.compute = 0.25, .communication = 0, .exposed_communication = 0, .input_wait = {}, .optimizer = {}, .idle = 0});
  return record;
}

TEST(RunRecord, HasTheFieldsOfTheContract) {
  const Json json = to_json(example());
  for (const char* field :
       {"schema", "command", "started", "build", "machine", "config", "given", "cluster", "steps", "results"}) {
    EXPECT_TRUE(json.contains(field)) << field;
  }
  for (const char* field : {"images_per_second", "images_per_second_per_worker", "step_seconds", "jitter", "loss",
                            "breakdown", "overlap", "peak_rss_bytes", "flops_per_second", "utilisation"}) {
    EXPECT_TRUE(json["results"].contains(field)) << field;
  }
  for (const char* field : {"mean", "median", "p95", "stderr"})
    EXPECT_TRUE(json["results"]["step_seconds"].contains(field)) << field;
  for (const char* field : {"compute", "communication", "exposed_communication", "input_wait", "optimizer", "idle"}) {
    EXPECT_TRUE(json["results"]["breakdown"][0].contains(field)) << field;
  }
  EXPECT_EQ(json["started"], "2024-05-01T12:30:00Z");
  EXPECT_EQ(json["steps"][0][1][0], 0.125);
  EXPECT_EQ(json["cluster"][0]["cores"], Json({0, 1}));
}

TEST(RunRecord, HasThePipelineAndThePlansConsidered) {
  EXPECT_FALSE(to_json(example()).contains("pipeline"));
  EXPECT_FALSE(to_json(example()).contains("plans"));
  RunRecord record = example();
  record.pipeline = {.parallel = "hybrid:3-1",
                     .stages = {{.replicas = 3}, {.begins_at = "fc6", .replicas = 1}},
                     .micro_batches = 12,
                     .schedule = "1f1b",
                     .cuts = {{.at = "fc6", .bytes_per_step = 4096}},
                     .bubble_share = {0.25, 0.125}};
  record.plans.resize(2);
  record.plans[0].parallel = "data";
  record.plans[0].problem = "needs 4 GB of memory";
  static_cast<Pipeline&>(record.plans[1]) = *record.pipeline;
  record.plans[1].chosen = true;
  record.plans[1].images_per_second = 30;
  EXPECT_EQ(record.predicted_images_per_second(), 30);
  const Json json = to_json(record);
  EXPECT_EQ(json["pipeline"]["stages"], Json::parse(R"([{"replicas": 3}, {"begins_at": "fc6", "replicas": 1}])"));
  EXPECT_EQ(json["pipeline"]["cuts"][0]["bytes_per_step"], 4096);
  EXPECT_FALSE(json["plans"][0].contains("stages"));
  RunRecord again;
  trireme::record::read(json, again);
  EXPECT_EQ(to_json(again), json);
}

TEST(RunRecord, WhatWasNotMeasuredIsNull) {
  RunRecord record = example();
  record.results.loss = std::numeric_limits<double>::quiet_NaN();
  const Json json = to_json(record);
  EXPECT_TRUE(json["results"]["overlap"].is_null());
  EXPECT_TRUE(json["results"]["loss"].is_null());
  EXPECT_TRUE(json["results"]["breakdown"][0]["optimizer"].is_null());
  EXPECT_EQ(json["results"]["breakdown"][0]["communication"], 0.0);
}

TEST(RunRecord, ErrorAndInterruptAppearOnlyWhereTheyHappened) {
  RunRecord record = example();
  EXPECT_FALSE(to_json(record).contains("error"));
  EXPECT_FALSE(to_json(record).contains("interrupted"));
  record.error = "the loss became nan";
  record.interrupted = true;
  EXPECT_EQ(to_json(record)["error"], "the loss became nan");
  EXPECT_EQ(to_json(record)["interrupted"], true);
}

TEST(RunRecord, KnowsTheCommandOfThisProcess) {
  ASSERT_FALSE(command_line().empty());
  EXPECT_NE(command_line().front().find("test_record"), std::string::npos);
}

TEST_F(RunRecordFile, IsWrittenWholeAndReplacesAnOlderOne) {
  std::ofstream(path("record.json")) << "something older and longer than what replaces it";
  write_json({{"a", 1}}, path("record.json"));
  EXPECT_EQ(read(path("record.json")), Json({{"a", 1}}));
  EXPECT_EQ(files(), 1u);  // nothing left aside
}

TEST_F(RunRecordFile, IsWrittenThroughALink) {
  write_json({{"a", 1}}, path("record.json"));
  fs::create_symlink("record.json", path("link.json"));
  write_json({{"a", 2}}, path("link.json"));
  EXPECT_TRUE(fs::is_symlink(path("link.json")));
  EXPECT_EQ(read(path("record.json"))["a"], 2);
}

TEST_F(RunRecordFile, DoesNotReplaceADevice) {
  check_writable("/dev/null");
  write_json({{"a", 1}}, "/dev/null");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(RunRecordFile, SurvivesTextThatIsNotUtf8) {
  write_json({{"command", "caf\xe9"}}, path("record.json"));
  EXPECT_TRUE(read(path("record.json")).contains("command"));
}

TEST_F(RunRecordFile, CheckingLeavesNothingBehind) {
  check_writable(path("record.json"));
  check_writable("-");
  EXPECT_EQ(files(), 0u);
}

TEST_F(RunRecordFile, UnwritablePathsAreBadInput) {
  EXPECT_EQ(kind_of_check(""), ErrorKind::bad_input);
  EXPECT_EQ(kind_of_check(folder_.path().string()), ErrorKind::bad_input);
  EXPECT_EQ(kind_of_check(path("no/such/folder/record.json")), ErrorKind::bad_input);
  EXPECT_EQ(kind_of_check("/proc/record.json"), ErrorKind::bad_input);
  EXPECT_EQ(kind_of_check(path(std::string(300, 'x'))), ErrorKind::bad_input);
  EXPECT_EQ(files(), 0u);
}

TEST_F(RunRecordFile, AFailedWriteThrowsAndLeavesNothingBehind) {
  EXPECT_THROW(write_json({{"a", 1}}, path("no/such/folder/record.json")), Error);
  EXPECT_THROW(write_json({{"a", 1}}, "/dev/full"), Error);
  EXPECT_EQ(files(), 0u);
}

}  // namespace
}  // namespace trireme::record
