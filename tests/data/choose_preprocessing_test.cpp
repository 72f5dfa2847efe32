// What is done to images depends on what they are, not on the files that they come in.
#include "trireme/data/choose_preprocessing.hpp"

#include <gtest/gtest.h>

#include "tests/data/memory_dataset.hpp"

namespace trireme::data {
namespace {

using testkit::encode_jpeg;
using testkit::JpegColours;
using testkit::MemoryDataset;
using testkit::picture;

// As files of JPEG images have it: nobody knows a size without looking.
Sample jpeg(int height, int width, JpegColours colours = JpegColours::rgb) {
  Sample sample;
  sample.encoding = Encoding::jpeg;
  const int channels = colours == JpegColours::grey ? 1 : 3;
  sample.bytes = encode_jpeg({.height = height, .width = width, .colours = colours}, picture(height, width, channels));
  return sample;
}

Sample pixels(int height, int width, int channels) {
  Sample sample;
  sample.bytes.resize(height * width * channels);
  sample.height = height;
  sample.width = width;
  sample.channels = channels;
  return sample;
}

Glimpse glimpse_of(std::vector<Sample> samples) { return glimpse(MemoryDataset(std::move(samples))); }

Crop crop_for(const Glimpse& images, int size, bool training) {
  return preprocessing_for(images, size, 3, training).crop;
}

TEST(ChoosePreprocessing, SmallImagesAreSmallInEveryContainer) {
  for (const Sample& sample : {jpeg(32, 32), pixels(32, 32, 3)}) {
    const Glimpse images = glimpse_of({sample, sample});
    EXPECT_EQ(crop_for(images, 32, true), Crop::padded);
    EXPECT_TRUE(preprocessing_for(images, 32, 3, true).flip);
    EXPECT_EQ(crop_for(images, 32, false), Crop::none);
    EXPECT_FALSE(preprocessing_for(images, 32, 3, false).flip);
    EXPECT_EQ(crop_for(images, 224, true), Crop::random) << "of a network for photographs";
  }
}

TEST(ChoosePreprocessing, GreyOnesAreDigitsInEveryContainer) {
  for (const Sample& sample : {jpeg(28, 28, JpegColours::grey), pixels(28, 28, 1)}) {
    const Glimpse images = glimpse_of({sample});
    EXPECT_EQ(images.channels, 1);
    EXPECT_EQ(crop_for(images, 28, true), Crop::none);
    EXPECT_FALSE(preprocessing_for(images, 28, 1, true).flip);
  }
}

TEST(ChoosePreprocessing, PhotographsAreCropped) {
  Sample broken;
  broken.encoding = Encoding::jpeg;
  for (const Glimpse& images :
       {glimpse_of({jpeg(120, 160), jpeg(160, 120)}), glimpse_of({jpeg(32, 32), jpeg(32, 65)}), glimpse_of({broken})}) {
    EXPECT_EQ(crop_for(images, 32, true), Crop::random);
    EXPECT_EQ(crop_for(images, 32, false), Crop::centre);
  }
}

TEST(ChoosePreprocessing, OnlyAFewAreLookedAtAndBrokenOnesPassedOver) {
  MemoryDataset many(std::vector<Sample>(1000, jpeg(20, 30)));
  many.unreadable = {0, 31};
  const Glimpse images = glimpse(many);
  EXPECT_EQ(images.height, 20);
  EXPECT_EQ(images.width, 30);
  EXPECT_TRUE(images.same_size);
  EXPECT_LE(many.reads, 32);
}

TEST(ChoosePreprocessing, OtherImagesHaveAnotherHash) {
  const auto hash_of = [](const Sample& sample) { return glimpse_of({pixels(2, 2, 1), sample}).hash; };
  Sample other = pixels(2, 2, 1);
  EXPECT_EQ(hash_of(pixels(2, 2, 1)), hash_of(other));
  other.label = 1;
  EXPECT_NE(hash_of(pixels(2, 2, 1)), hash_of(other));
  other.label = 0;
  other.bytes[3] = std::byte{1};
  EXPECT_NE(hash_of(pixels(2, 2, 1)), hash_of(other));
}

TEST(ChoosePreprocessing, WhatTheUserSaysCounts) {
  const Glimpse small = glimpse_of({pixels(32, 32, 3)});
  const PreprocessingOptions options{.crop = Crop::centre,
                                     .eval_crop = Crop::centre,
                                     .augment = Augmentation{.colour = true},
                                     .mean = {1, 2, 3},
                                     .deviation = {4}};
  const Preprocessing training = preprocessing_for(small, 32, 3, true, options);
  const Preprocessing evaluation = preprocessing_for(small, 32, 3, false, options);
  EXPECT_EQ(describe(training), "centre crop, distorted colours, to 3x32x32, (pixel - (1, 2, 3)) / 4");
  EXPECT_EQ(describe(evaluation), "centre crop, to 3x32x32, (pixel - (1, 2, 3)) / 4");
  EXPECT_EQ(chosen_options(training, evaluation), options);
  PreprocessingOptions some{.crop = Crop::none, .mean = {7}};
  some.complete_with(options);
  EXPECT_EQ(some.crop, Crop::none);
  EXPECT_EQ(some.mean, (std::vector<float>{7}));
  EXPECT_EQ(some.eval_crop, Crop::centre);
  EXPECT_EQ(some.deviation, (std::vector<float>{4}));
}

template <typename Function>
std::string message_of(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "";
}

TEST(ChoosePreprocessing, TextsAreReadAsTheyAreWritten) {
  for (const Crop crop : {Crop::none, Crop::random, Crop::padded, Crop::centre}) {
    EXPECT_EQ(parse_crop("crop", to_string(crop), true), crop);
  }
  for (const char* text : {"none", "flip", "colour", "flip,colour"}) EXPECT_EQ(to_string(parse_augment(text)), text);
  EXPECT_EQ(to_string(parse_mean("123.675,116.28,103.53")), "123.675,116.28,103.53");
  EXPECT_EQ(to_string(parse_mean("5,5,5")), "5");
  EXPECT_NE(message_of([] { parse_crop("crop", "middle", true); }).find("none, random, padded, centre"),
            std::string::npos);
  EXPECT_NE(message_of([] { parse_crop("eval-crop", "random", false); }).find("--eval-crop random: must be none or"),
            std::string::npos);
  EXPECT_NE(message_of([] { parse_augment("flip,rotate"); }).find("some of flip, colour"), std::string::npos);
  for (const char* text : {"", "x", "1,2", "1,2,3,4", "1,,3", "nan"}) {
    EXPECT_NE(message_of([&] { parse_mean(text); }).find("one number for all channels"), std::string::npos) << text;
  }
  EXPECT_NE(message_of([] { parse_deviation("0.229,0.224,0.225"); }).find("multiply values meant for 0 to 1 by 255"),
            std::string::npos);
  const Glimpse grey = glimpse_of({pixels(28, 28, 1)});
  EXPECT_NE(message_of([&] {
              preprocessing_for(grey, 28, 1, true, {.mean = {1, 2, 3}});
            }).find("takes 1 channel"),
            std::string::npos);
}

}  // namespace
}  // namespace trireme::data
