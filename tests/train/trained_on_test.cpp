#include "trireme/train/trained_on.hpp"

#include <gtest/gtest.h>

namespace trireme::train {
namespace {

TrainedOn digits() {
  return {.samples = 60,
          .classes = 10,
          .class_names = {},
          .images = {.height = 28, .width = 28, .channels = 1, .hash = 0xfedcba9876543210},
          .preprocessing = {.crop = data::Crop::none,
                            .eval_crop = data::Crop::none,
                            .augment = data::Augmentation{},
                            .mean = {127.5f},
                            .deviation = {127.5f}}};
}

TrainedOn photographs() {
  TrainedOn data = digits();
  data.classes = 2;
  data.class_names = {"cat, grey", "dog \"Rex\""};
  data.images = {.channels = 3, .same_size = false, .hash = 5};
  data.preprocessing.mean = {123.675f, 116.28f, 103.53f};
  return data;
}

TEST(TrainedOn, IsReadAsItWasWritten) {
  for (const TrainedOn& data : {digits(), photographs()}) {
    const auto read = trained_on(to_metadata(data));
    ASSERT_TRUE(read);
    EXPECT_EQ(difference_in_training(data, *read), "");
    EXPECT_EQ(read->class_names, data.class_names);
    EXPECT_EQ(read->preprocessing, data.preprocessing);
    EXPECT_EQ(to_metadata(*read), to_metadata(data));
  }
  EXPECT_FALSE(trained_on(Metadata{{"model", "mnist"}})) << "of an older version";
}

TEST(TrainedOn, AnotherDataSetIsTold) {
  const auto difference = [](auto change) {
    TrainedOn now = digits();
    change(now);
    return difference_in_training(digits(), now);
  };
  EXPECT_EQ(difference([](TrainedOn& now) { now.samples = 70; }), "60 images, but there are 70 here");
  EXPECT_EQ(difference([](TrainedOn& now) { now.classes = 7; }), "10 classes, but these have 7");
  EXPECT_EQ(difference([](TrainedOn& now) { now.images.channels = 3; }), "grey images, but these are coloured");
  EXPECT_EQ(difference([](TrainedOn& now) { now.images.height = 32; }), "images of 28x28, but these have 32x28");
  EXPECT_EQ(difference([](TrainedOn& now) { now.images.hash = 1; }), "as many images, but different ones");
  TrainedOn renamed = photographs();
  renamed.class_names[1] = "wolf";
  EXPECT_EQ(difference_in_training(photographs(), renamed), "class 1 was 'dog \"Rex\"', but here it is 'wolf'");
}

// Validation images are never those of training: what counts is of which kind they are.
TEST(TrainedOn, ImagesOfAnotherKindAreTold) {
  TrainedOn validation = digits();
  validation.samples = 7;
  validation.images.hash = 1;
  EXPECT_EQ(difference_in_kind(digits(), validation), "");
  validation.images.height = validation.images.width = 32;
  EXPECT_EQ(difference_in_kind(digits(), validation), "images of 28x28, but these have 32x32");
  validation.images.channels = 3;
  EXPECT_EQ(difference_in_kind(digits(), validation), "grey images of 28x28, but these are coloured, of 32x32");
  TrainedOn others = photographs();
  others.images.height = 375;
  others.images.width = 500;
  EXPECT_EQ(difference_in_kind(photographs(), others), "") << "photographs have all sizes";
  others.class_names[0] = "bird";
  EXPECT_NE(difference_in_kind(photographs(), others), "");
}

}  // namespace
}  // namespace trireme::train
