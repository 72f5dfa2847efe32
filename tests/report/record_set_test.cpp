#include "trireme/report/record_set.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/report/record_builder.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"

namespace trireme::report {
namespace {

using testkit::RecordBuilder;
using testkit::write_file;

class RecordFiles : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const Json& json) const { write_file(path(name), json.dump()); }

  trireme::testkit::TemporaryFolder folder_;
};

std::string error_of(const std::vector<std::string>& paths) {
  try {
    load_records(paths);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "no error";
}

TEST_F(RecordFiles, FolderOfAStudyIsRead) {
  std::filesystem::create_directory(path("runs"));
  write("plan.json", {{"schema", "trireme.plan/1"},
                      {"name", "threads"},
                      {"title", "Threads"},
                      {"question", "How many?"},
                      {"figure", "lines"},
                      {"vary", {{"num-intra-threads", {1, 2}}}}});
  write("runs/a.r0.json", RecordBuilder().study("threads", {{"num-intra-threads", 1}}).json());
  write("runs/train.json", testkit::training_record());
  write("runs/net.json", testkit::network_record());
  write_file(path("runs/notes.txt"), "not for reports");
  const RecordSet records = load_records({path("")});
  ASSERT_EQ(records.runs.size(), 1U);
  EXPECT_EQ(records.runs[0].study_name, "threads");
  EXPECT_EQ(records.trainings.size(), 1U);
  EXPECT_EQ(records.networks.size(), 1U);
  ASSERT_EQ(records.plans.count("threads"), 1U);
  EXPECT_EQ(records.plans.at("threads").question, "How many?");
  EXPECT_EQ(records.plans.at("threads").varied, std::vector<std::string>{"num-intra-threads"});
  EXPECT_TRUE(records.warnings.empty());
}

TEST_F(RecordFiles, WhatIsNoRecordIsNamedInAWarning) {
  write("good.json", RecordBuilder().json());
  write_file(path("broken.json"), "{\"schema\": \"trireme.run/1\", ");
  write("later.json", {{"schema", "trireme.run/2"}});
  write("list.json", Json::array({1, 2}));
  const RecordSet records = load_records({path("")});
  EXPECT_EQ(records.runs.size(), 1U);
  ASSERT_EQ(records.warnings.size(), 3U);
  EXPECT_NE(records.warnings[0].find("broken.json"), std::string::npos);
  EXPECT_NE(records.warnings[0].find("not valid JSON"), std::string::npos);
  EXPECT_NE(records.warnings[1].find("trireme.run/2"), std::string::npos);
  EXPECT_NE(records.warnings[2].find("no schema"), std::string::npos);
}

TEST_F(RecordFiles, AFileThatWasNamedMustBeARecord) {
  write_file(path("broken.json"), "{");
  write("later.json", {{"schema", "trireme.run/2"}});
  EXPECT_NE(error_of({path("broken.json")}).find("not valid JSON"), std::string::npos);
  EXPECT_NE(error_of({path("later.json")}).find("this version reads trireme.run/1"), std::string::npos);
  EXPECT_NE(error_of({path("none.json")}).find("no such file"), std::string::npos);
  write_file(path("deep.json"), "{\"schema\": \"trireme.run/1\", \"machine\": " + std::string(200'000, '[') +
                                    std::string(200'000, ']') + "}");
  EXPECT_NE(error_of({path("deep.json")}).find("nested more than 100 levels deep"), std::string::npos);
}

TEST_F(RecordFiles, NothingToReportIsAnError) {
  EXPECT_NE(error_of({path("")}).find("no records"), std::string::npos);
  write_file(path("broken.json"), "{");
  EXPECT_NE(error_of({path("")}).find("broken.json"), std::string::npos);
}

TEST_F(RecordFiles, TheSameFileTwiceIsOneRun) {
  write("a.json", RecordBuilder().json());
  EXPECT_EQ(load_records({path("a.json"), path("./a.json")}).runs.size(), 1U);
}

TEST_F(RecordFiles, ARunCountsOnceHoweverItIsFound) {
  namespace fs = std::filesystem;
  fs::create_directory(path("runs"));
  write("runs/a.json", RecordBuilder().speed(100).json());
  write("runs/b.json", RecordBuilder().speed(101).json());
  fs::create_symlink(path("runs/a.json"), path("linked.json"));
  EXPECT_EQ(load_records({path(""), path("runs"), path("runs/a.json")}).runs.size(), 2U);
  EXPECT_TRUE(load_records({path(""), path("runs")}).warnings.empty());
  fs::copy(path("runs"), path("copied"));
  const RecordSet records = load_records({path("")});
  EXPECT_EQ(records.runs.size(), 2U);
  ASSERT_EQ(records.warnings.size(), 1U);
  EXPECT_NE(records.warnings[0].find("2 records of runs that are also in other files"), std::string::npos)
      << records.warnings[0];
}

TEST_F(RecordFiles, RunsThatOnlyLookAlikeAllCount) {  // the same second, the same speed
  write("a.json", RecordBuilder().study("s", {{"batch-size", 8}}, 1).json());
  write("b.json", RecordBuilder().study("s", {{"batch-size", 8}}, 2).json());
  write("c.json", RecordBuilder().study("s", {{"batch-size", 8}}, 2).host("node2").json());
  EXPECT_EQ(load_records({path("")}).runs.size(), 3U);
}

TEST(ReadRun, AnErrorThatIsNullIsNone) {
  Json record = RecordBuilder().json();
  record["error"] = nullptr;
  EXPECT_TRUE(read_run(record, "x.json").is_measured());
}

TEST(ReadRun, HostsAreThoseOfItsTasks) {
  EXPECT_EQ(RecordBuilder().cluster({"h2", "h1", "h2"}).run().hosts, (std::vector<std::string>{"h1", "h2"}));
  EXPECT_TRUE(RecordBuilder().run().hosts.empty());
  EXPECT_EQ(RecordBuilder().no_machine().run().machine_line, record::kUnknownMachine);
}

TEST(ReadRun, SpeedMustBeThere) {
  Json record = RecordBuilder().json();
  record["results"]["images_per_second"] = nullptr;
  EXPECT_THROW(read_run(record, "x.json"), Error);
  record["results"] = "text";
  EXPECT_THROW(read_run(record, "x.json"), Error);
  record["results"] = {{"images_per_second", -3}};
  EXPECT_THROW(read_run(record, "x.json"), Error);
}

TEST(ReadRun, FailedAndInterruptedRunsAreNotMeasured) {
  const report::Run failed = RecordBuilder().error("out of memory").run();
  EXPECT_FALSE(failed.is_measured());
  EXPECT_EQ(*failed.error, "out of memory");
  Json record = RecordBuilder().json();
  record["interrupted"] = true;
  EXPECT_FALSE(read_run(record, "x.json").is_measured());
}

TEST(ReadRun, OptionsHaveTheNamesOfTheCommandLine) {
  const report::Run run = RecordBuilder().config("servers", 2).config("workers", 4).run();
  EXPECT_EQ(run.option_or("ps", 0), 2);
  EXPECT_EQ(run.option_or("batch-size", 0), 32);
  EXPECT_EQ(run.effective_batch(), 128);
}

TEST(ReadRun, CommandCanBeRepeated) {
  EXPECT_EQ(RecordBuilder().run().repeat_command, "trireme bench --model resnet50");
  EXPECT_EQ(RecordBuilder().config("workers", 2).config("servers", 1).run().repeat_command,
            "trireme launch --workers 2 --ps 1 -- bench --model resnet50");
}

TEST(ReadRun, ValuesThatSetSeveralOptionsAreShownByTheirLabel) {
  const report::Run run =
      RecordBuilder().study("sp", {{"mode", {{"label", "SP"}, {"workers", 1}, {"bucket-mb", 4}}}}).run();
  EXPECT_EQ(run.cell["mode"], "SP");
  EXPECT_EQ(run.option_or("bucket-mb", 0), 4);
}

}  // namespace
}  // namespace trireme::report
