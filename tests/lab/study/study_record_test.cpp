// What a study finds in its folder again, and what it refuses to take for its own.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"
#include "trireme/lab/study/trial.hpp"

namespace trireme::lab {
namespace {

class StudyRecord : public testing::Test {
 protected:
  static StudyPlan batches() {
    StudyPlan plan;
    plan.name = "batches";
    return plan;
  }
  void write(const Json& record) const { write_json(record, run_file(folder_of_study_.path(), run_)); }
  record::RunRecord record() const {
    record::RunRecord record;
    record.results.images_per_second = 12.5;
    record.study = study_;
    return record;
  }
  auto found() const { return find_record(folder_of_study_.path(), run_, study_); }
  std::string refusal() const {
    try {
      found();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      return error.what();
    }
    return "no error";
  }

  const RunName run_{"batch-size-1", 2};
  const StudyCell cell_{.varied = {{"batch-size", 1}}, .configuration = {}, .slug = run_.cell};
  const record::StudyRun study_ = identity_of(batches(), cell_, 2);
  testkit::TemporaryFolder folder_;
  StudyFolder folder_of_study_{folder_ / "study"};
};

TEST_F(StudyRecord, IsFoundAgain) {
  EXPECT_FALSE(found());
  folder_of_study_.write_run(run_, record());
  ASSERT_TRUE(found());
  EXPECT_EQ(to_json(*found()), to_json(record()));
  std::ofstream(run_file(folder_of_study_.path(), run_)) << "{ half";
  EXPECT_FALSE(found());
}

TEST_F(StudyRecord, OfAnotherRunIsRefused) {
  const Json others{{"name", "other"}, {"cell", {{"batch-size", 2}}}, {"repeat", 1}, {"framework", "pytorch"}};
  for (const auto& [key, value] : others.items()) {
    Json other = to_json(record());
    other["study"][key] = value;
    write(other);
    EXPECT_NE(refusal().find("is the record of another run: its study." + key + " is " + value.dump()),
              std::string::npos)
        << refusal();
  }
  Json foreign = to_json(record());
  foreign.erase("study");
  write(foreign);
  EXPECT_NE(refusal().find("its study.name is null, not \"batches\""), std::string::npos) << refusal();
  write(Json::array({1}));
  EXPECT_NE(refusal().find("runs/batch-size-1.r2.json is the record of another run"), std::string::npos) << refusal();
}

TEST_F(StudyRecord, HasFailedWhereItSaysWhy) {
  Json one = to_json(record());
  one["error"] = nullptr;
  write(one);
  ASSERT_TRUE(found());
  EXPECT_FALSE(found()->error);
  one["error"] = "no room";
  one["results"] = nullptr;
  write(one);
  ASSERT_TRUE(found());
  EXPECT_EQ(found()->error, "no room");
  one["error"] = nullptr;
  write(one);
  EXPECT_NE(refusal().find("has neither a speed nor an error"), std::string::npos);
}

TEST(StudyFolderPlan, MustBeOne) {
  const testkit::TemporaryFolder folder;
  EXPECT_FALSE(read_plan(folder.path()));
  EXPECT_FALSE(read_plan(folder.path() / "none"));
  for (const char* text : {"[]", "{}", R"({"schema": "trireme.run/1"})", R"({"schema": "trireme.pl)", ""}) {
    std::ofstream(folder / "plan.json") << text;
    EXPECT_THROW(read_plan(folder.path()), Error) << text;
  }
  // Of another hand: no number, no objects.
  std::ofstream(folder / "plan.json") << R"({"schema": "trireme.plan/1", "repeats": "x", "vary": 5, "fixed": []})";
  const auto kept = read_plan(folder.path());
  ASSERT_TRUE(kept);
  const Json plan{{"schema", kPlanSchema}, {"name", "x"}, {"repeats", 5}, {"vary", Json::object()}};
  EXPECT_THROW(check_same_study(*kept, plan, folder.path()), Error);
}

TEST(StudyFolderPlan, OfAnotherProgramLeavesTheFolderAsItIs) {
  const testkit::TemporaryFolder folder;
  std::ofstream(folder / "plan.json") << R"({"schema": "other"})";
  std::ofstream(folder / "kept.tmp") << "theirs";
  EXPECT_THROW(StudyFolder(folder.path()), Error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator()),
            2);
}

}  // namespace
}  // namespace trireme::lab
