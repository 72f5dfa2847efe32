// --parallel with a file, as a user writes it or as a record has it.
#include "trireme/train/pipeline_config.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"

namespace trireme::train {
namespace {

class PipelineFile : public testing::Test {
 protected:
  PipelineConfig resolve(const std::string& text, int workers, DistributionOptions options = {}) const {
    options.parallel = folder_ / "plan.json";
    std::ofstream(options.parallel) << text;
    return resolve_pipeline(options, workers);
  }
  std::string refusal(const std::string& text, const DistributionOptions& options = {}) const {
    try {
      resolve(text, 2, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      return error.what();
    }
    return "";
  }

  testkit::TemporaryFolder folder_;
};

TEST_F(PipelineFile, OfARecordIsThePipelineOfItsRun) {
  const char* const recorded = R"({"parallel": "hybrid:3-1", "micro_batches": 6, "schedule": "zb-h1",
      "stages": [{"replicas": 3}, {"begins_at": "fc6", "replicas": 1}],
      "cuts": [{"at": "fc6", "bytes_per_step": 4096}], "bubble_share": [0.25, 0.125]})";
  const PipelineConfig config = resolve(recorded, 4);
  EXPECT_EQ(config.replicas, (std::vector{3, 1}));
  EXPECT_EQ(config.cuts, std::vector<std::string>{"fc6"});
  EXPECT_EQ(config.micro_batches, 6);
  EXPECT_EQ(config.kind, PipelineKind::zero_bubble);
  const PipelineConfig changed = resolve(recorded, 4, {.micro_batches = 12, .schedule = "gpipe"});
  EXPECT_EQ(changed.micro_batches, 12) << "options win";
  EXPECT_EQ(changed.kind, PipelineKind::gpipe) << "options win";
}

TEST_F(PipelineFile, LeavesThePartsToTheScheduleInterleaved) {
  const PipelineConfig config = resolve(R"({"stages": [{}, {"replicas": 1}], "schedule": "interleaved"})", 2);
  EXPECT_EQ(config.replicas, (std::vector{1, 1}));
  EXPECT_TRUE(config.cuts.empty());
  EXPECT_EQ(config.kind, PipelineKind::interleaved);
}

TEST_F(PipelineFile, IsRefusedWithWhatIsWrongInIt) {
  EXPECT_NE(refusal("{}").find("must be {\"stages\""), std::string::npos);
  EXPECT_NE(refusal(R"({"stages": [{}, {}]})").find("every stage but the first has a node"), std::string::npos);
  EXPECT_NE(refusal(R"({"stages": [{"begins_at": "a"}]})").find("every stage but the first"), std::string::npos);
  EXPECT_NE(refusal(R"({"stages": [{}, {"begins_at": "a"}]})", {.schedule = "interleaved"}).find("no stage has"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"stages": [{"workers": 2}]})").find("workers: 2 in a stage"), std::string::npos);
  EXPECT_NE(refusal(R"({"stages": [{}], "microbatches": 2})").find("microbatches: 2 beside"), std::string::npos);
  EXPECT_NE(refusal(R"({"stages": [{}], "schedule": "2f2b"})").find("schedule: \"2f2b\" beside"), std::string::npos);
}

}  // namespace
}  // namespace trireme::train
