#include "trireme/data/preprocess.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/data/jpeg_file.hpp"
#include "trireme/base/error.hpp"
#include "trireme/data/image.hpp"

namespace trireme::data {
namespace {

using testkit::encode_jpeg;
using testkit::picture;

Sample pixels_sample(int height, int width, int channels, const std::vector<std::uint8_t>& pixels) {
  Sample sample;
  sample.height = height;
  sample.width = width;
  sample.channels = channels;
  for (const std::uint8_t value : pixels) sample.bytes.push_back(std::byte{value});
  return sample;
}

std::vector<float> run(const Preprocessing& preprocessing, const Sample& sample, std::uint64_t key = 1) {
  Preprocessor preprocessor(preprocessing);
  std::vector<float> out(preprocessing.channels * preprocessing.size * preprocessing.size);
  preprocessor.run(sample, key, out);
  return out;
}

Preprocessing plain(int size, int channels) {
  return {.size = size, .channels = channels, .crop = Crop::none, .flip = false, .mean = {}, .deviation = {1, 1, 1}};
}

TEST(Preprocess, ImagesOfTheSizeStayAsTheyAre) {
  const auto pixels = picture(28, 28, 1);
  const auto out = run(plain(28, 1), pixels_sample(28, 28, 1, pixels));
  for (std::size_t i = 0; i < pixels.size(); ++i) EXPECT_EQ(out[i], static_cast<float>(pixels[i]));
}

TEST(Preprocess, ValuesAreScaledAndMoved) {
  Preprocessing preprocessing = plain(2, 1);
  preprocessing.mean = preprocessing.deviation = {127.5f, 127.5f, 127.5f};
  const auto out = run(preprocessing, pixels_sample(2, 2, 1, {0, 255, 51, 204}));
  const std::vector<float> expected{-1, 1, -0.6f, 0.6f};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(out[i], expected[i], 1e-6f);
}

TEST(Preprocess, ChannelsComeFirstOrLast) {
  const std::vector<std::uint8_t> pixels{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  Preprocessing preprocessing = plain(2, 3);
  EXPECT_EQ(run(preprocessing, pixels_sample(2, 2, 3, pixels)),
            (std::vector<float>{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}));
  preprocessing.channels_last = true;
  EXPECT_EQ(run(preprocessing, pixels_sample(2, 2, 3, pixels)),
            (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
}

TEST(Preprocess, GreyIsRepeatedAndColourBecomesLuminance) {
  EXPECT_EQ(run(plain(1, 3), pixels_sample(1, 1, 1, {9})), (std::vector<float>{9, 9, 9}));
  EXPECT_EQ(run(plain(1, 1), pixels_sample(1, 1, 3, {100, 50, 200})), (std::vector<float>{82}));
}

// A plane stays a plane under bilinear interpolation, but for the edges.
TEST(Preprocess, ScalesByInterpolation) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < 20; ++y) {
    for (int x = 0; x < 30; ++x) pixels.push_back(static_cast<std::uint8_t>(3 * x + 5 * y));
  }
  for (const int size : {15, 40}) {
    const auto out = run(plain(size, 1), pixels_sample(20, 30, 1, pixels));
    for (int y = 0; y < size; ++y) {
      for (int x = 0; x < size; ++x) {
        const double column = std::clamp((x + 0.5) * 30 / size - 0.5, 0.0, 29.0);
        const double row = std::clamp((y + 0.5) * 20 / size - 0.5, 0.0, 19.0);
        EXPECT_NEAR(out[y * size + x], 3 * column + 5 * row, 1e-3) << x << " " << y;
      }
    }
  }
}

TEST(Preprocess, HalfOfTheSamplesAreMirrored) {
  Preprocessing preprocessing = plain(2, 1);
  preprocessing.flip = true;
  const Sample sample = pixels_sample(2, 2, 1, {1, 2, 3, 4});
  int mirrored = 0;
  for (std::uint64_t key = 0; key < 1000; ++key) {
    const auto out = run(preprocessing, sample, key);
    if (out == std::vector<float>{2, 1, 4, 3}) {
      ++mirrored;
    } else {
      EXPECT_EQ(out, (std::vector<float>{1, 2, 3, 4}));
    }
  }
  EXPECT_NEAR(mirrored, 500, 60);
}

TEST(Preprocess, PaddedImagesAreMovedByUpToFourPixels) {
  Preprocessing preprocessing = plain(8, 1);
  preprocessing.crop = Crop::padded;
  std::vector<std::uint8_t> pixels(64, 0);
  pixels[4 * 8 + 4] = 200;  // a dot: its place tells the offset
  std::set<std::size_t> places;
  for (std::uint64_t key = 0; key < 1000; ++key) {
    const auto out = run(preprocessing, pixels_sample(8, 8, 1, pixels), key);
    const auto dot = std::find(out.begin(), out.end(), 200.0f);
    places.insert(dot == out.end() ? 64 : static_cast<std::size_t>(dot - out.begin()));
  }
  // From row and column 0 to 8, and all that lie outside as one.
  EXPECT_EQ(places.size(), 65u);
}

TEST(Preprocess, TheCentreIsTheMiddleOfTheImage) {
  const Window window = centre_window({.height = 375, .width = 500});
  EXPECT_EQ(window.height, 328);  // 375 / 1.145
  EXPECT_EQ(window.width, 328);
  EXPECT_EQ(window.top, 23);
  EXPECT_EQ(window.left, 86);
}

TEST(Preprocess, RandomWindowsHaveTheShapeAndAreaAskedFor) {
  const Window image{.height = 375, .width = 500};
  double least = 1, most = 0, sum = 0;
  for (std::uint64_t key = 0; key < 5000; ++key) {
    const Window window = random_window(image, {}, key);
    ASSERT_GE(window.top, 0);
    ASSERT_GE(window.left, 0);
    ASSERT_LE(window.top + window.height, image.height);
    ASSERT_LE(window.left + window.width, image.width);
    const double aspect = static_cast<double>(window.width) / window.height;
    ASSERT_GT(aspect, 0.73);
    ASSERT_LT(aspect, 1.36);
    const double area = static_cast<double>(window.height) * window.width / (375.0 * 500);
    least = std::min(least, area);
    most = std::max(most, area);
    sum += area / 5000;
  }
  EXPECT_GE(least, 0.1);  // the image is the box, a tenth of which is to be covered
  EXPECT_LT(least, 0.12);
  EXPECT_GT(most, 0.95);
  EXPECT_GT(sum, 0.3);
  EXPECT_LT(sum, 0.6);
}

TEST(Preprocess, RandomWindowsCoverTheObject) {
  const Window image{.height = 200, .width = 200};
  const Box box{.top = 0.8f, .left = 0.8f, .bottom = 1, .right = 1};
  for (std::uint64_t key = 0; key < 500; ++key) {
    const Window window = random_window(image, {&box, 1}, key);
    const int height = window.top + window.height - 160, width = window.left + window.width - 160;
    ASSERT_GE(std::min(height, 40) * std::min(width, 40), 160);
  }
  const Box outside{.top = 2, .left = 2, .bottom = 3, .right = 3};
  const Window whole = random_window(image, {&outside, 1}, 1);
  EXPECT_EQ(whole.height, 200);
  EXPECT_EQ(whole.width, 200);
}

TEST(Preprocess, TinyImagesHaveWindowsToo) {
  for (const auto& [height, width] : {std::pair{1, 1}, {1, 500}, {500, 1}, {2, 3}}) {
    for (std::uint64_t key = 0; key < 50; ++key) {
      const Window window = random_window({.height = height, .width = width}, {}, key);
      EXPECT_GT(window.height, 0);
      EXPECT_GT(window.width, 0);
      EXPECT_LE(window.top + window.height, height);
      EXPECT_LE(window.left + window.width, width);
    }
    Sample sample =
        pixels_sample(height, width, 1, std::vector<std::uint8_t>(static_cast<std::size_t>(height * width), 7));
    for (const Crop crop : {Crop::none, Crop::random, Crop::padded, Crop::centre}) {
      Preprocessing preprocessing = plain(3, 3);
      preprocessing.crop = crop;
      for (const float value : run(preprocessing, sample)) EXPECT_TRUE(value >= 0 && value <= 7);
    }
  }
}

// A JPEG image is decoded in part and scaled; the same pixels, decoded before, give nearly the same.
TEST(Preprocess, JpegImagesGiveWhatTheirPixelsGive) {
  for (const Crop crop : {Crop::none, Crop::random, Crop::padded, Crop::centre}) {
    Preprocessing preprocessing = plain(64, 3);
    preprocessing.crop = crop;
    preprocessing.flip = true;
    Sample jpeg;
    jpeg.encoding = Encoding::jpeg;
    jpeg.bytes = encode_jpeg({.height = 120, .width = 126}, picture(120, 126, 3));
    const Sample pixels = pixels_sample(120, 126, 3, testkit::decode_whole(jpeg.bytes, 3));
    for (std::uint64_t key = 0; key < 20; ++key) {
      const auto a = run(preprocessing, jpeg, key), b = run(preprocessing, pixels, key);
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-3) << "key " << key << ", value " << i;
    }
  }
}

TEST(Preprocess, LargeJpegImagesAreScaledWhileTheyAreDecoded) {
  Sample jpeg;
  jpeg.encoding = Encoding::jpeg;
  jpeg.bytes = encode_jpeg({.height = 600, .width = 800, .subsampled = false}, picture(600, 800, 3));
  const Sample pixels = pixels_sample(600, 800, 3, testkit::decode_whole(jpeg.bytes, 3));
  const auto a = run(plain(100, 3), jpeg), b = run(plain(100, 3), pixels);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 12) << i;
}

TEST(Preprocess, ColoursAreDistortedWithinTheirRange) {
  Preprocessing preprocessing = plain(16, 3);
  preprocessing.distort_colour = true;
  const Sample sample = pixels_sample(16, 16, 3, picture(16, 16, 3));
  const auto before = run(plain(16, 3), sample);
  const auto first = run(preprocessing, sample, 1), second = run(preprocessing, sample, 2);
  EXPECT_NE(first, before);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, run(preprocessing, sample, 1));
  for (const float value : first) EXPECT_TRUE(value >= 0 && value <= 255.001f) << value;
  preprocessing.channels_last = true;
  const auto last = run(preprocessing, sample, 1);
  for (std::size_t i = 0; i < 256; ++i) {
    for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(last[3 * i + c], first[256 * c + i], 0.01);
  }
}

// Grey has no hue and no saturation.
TEST(Preprocess, DistortedGreyStaysGrey) {
  Preprocessing preprocessing = plain(4, 3);
  preprocessing.distort_colour = true;
  const auto out = run(preprocessing, pixels_sample(4, 4, 1, std::vector<std::uint8_t>(16, 100)), 5);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_NEAR(out[i], out[16 + i], 0.5);
    EXPECT_NEAR(out[i], out[32 + i], 0.5);
    EXPECT_NEAR(out[i], 100, 32.5);
  }
}

TEST(Preprocess, WrongSizesAreErrors) {
  EXPECT_THROW(run(plain(4, 3), pixels_sample(4, 4, 3, {1, 2, 3})), Error);
  EXPECT_THROW(run(plain(4, 2), pixels_sample(1, 1, 1, {1})), Error);
}

TEST(Preprocess, EveryChannelHasItsMeanAndDeviation) {
  const std::vector<std::uint8_t> pixels{10, 20, 30, 14, 24, 34, 10, 20, 30, 10, 20, 30};
  Preprocessing preprocessing = plain(2, 3);
  preprocessing.mean = {10, 20, 30};
  preprocessing.deviation = {1, 2, 4};
  const Sample sample = pixels_sample(2, 2, 3, pixels);
  EXPECT_EQ(run(preprocessing, sample), (std::vector<float>{0, 4, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0}));
  preprocessing.channels_last = true;
  EXPECT_EQ(run(preprocessing, sample), (std::vector<float>{0, 0, 0, 4, 2, 1, 0, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace trireme::data
