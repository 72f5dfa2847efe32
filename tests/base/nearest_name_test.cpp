#include "trireme/base/nearest_name.hpp"

#include <gtest/gtest.h>

namespace trireme {
namespace {

const std::vector<std::string> kNames{"--batch-size", "--model", "--seed", "--data-dir", "bench", "net", "resnet50"};

TEST(NearestName, FindsWhatWasMisspelled) {
  EXPECT_EQ(nearest_name("--bach-size", kNames), "--batch-size");  // a letter is missing
  EXPECT_EQ(nearest_name("--modle", kNames), "--model");           // two letters have changed places
  EXPECT_EQ(nearest_name("--seeed", kNames), "--seed");            // one too many
  EXPECT_EQ(nearest_name("benhc", kNames), "bench");
  EXPECT_EQ(nearest_name("bunch", kNames), "bench");  // another letter
}

TEST(NearestName, DoesNotCountCaseAndDashes) {
  EXPECT_EQ(nearest_name("ResNet-50", kNames), "resnet50");
  EXPECT_EQ(nearest_name("-batchsize", kNames), "--batch-size");
  EXPECT_EQ(nearest_name("--data_dir", kNames), "--data-dir");
}

TEST(NearestName, DoesNotGuess) {
  EXPECT_EQ(nearest_name("fly", kNames), "");
  EXPECT_EQ(nearest_name("now", kNames), "");  // two of three letters of "net" are others
  EXPECT_EQ(nearest_name("", kNames), "");
  EXPECT_EQ(nearest_name("--", kNames), "");
  EXPECT_EQ(nearest_name("x", kNames), "");
  EXPECT_EQ(nearest_name("bench", {}), "");
}

TEST(NearestName, TakesTheNearerOfTwo) {
  EXPECT_EQ(nearest_name("resnet5", {"resnet152", "resnet50"}), "resnet50");
  EXPECT_EQ(nearest_name("resnet152", {"resnet50", "resnet152"}), "resnet152");
}

TEST(NearestName, EndsASentence) {
  EXPECT_EQ(suggestion("benhc", kNames), "; did you mean 'bench'?");
  EXPECT_EQ(suggestion("fly", kNames), ".");
}

}  // namespace
}  // namespace trireme
