#include "trireme/data/jpeg.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/data/jpeg_file.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"

namespace trireme::data {
namespace {

using testkit::decode_whole;
using testkit::encode_jpeg;
using testkit::JpegColours;
using testkit::picture;

struct JpegCase {
  const char* name;
  bool progressive, subsampled;
  JpegColours colours;
  int channels;
};

class JpegWindows : public ::testing::TestWithParam<JpegCase> {};

// Sides that are no multiples of the blocks, so that all of their edges occur.
TEST_P(JpegWindows, AreWhatTheWholeImageHasThere) {
  const JpegCase& test = GetParam();
  constexpr int kHeight = 75, kWidth = 101;
  const int components = test.colours == JpegColours::grey ? 1 : 3;
  const auto jpeg = encode_jpeg({.height = kHeight,
                                 .width = kWidth,
                                 .colours = test.colours,
                                 .progressive = test.progressive,
                                 .subsampled = test.subsampled},
                                picture(kHeight, kWidth, components));
  const auto whole = decode_whole(jpeg, test.channels);
  JpegDecoder decoder;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const RandomBlock random = philox(1, 0, i);
    Window window;
    window.height = 1 + static_cast<int>(random[0] % kHeight);
    window.width = 1 + static_cast<int>(random[1] % kWidth);
    window.top = static_cast<int>(random[2] % static_cast<unsigned>(kHeight - window.height + 1));
    window.left = static_cast<int>(random[3] % static_cast<unsigned>(kWidth - window.width + 1));
    const Window image = decoder.open(jpeg);
    ASSERT_EQ(image.height, kHeight);
    ASSERT_EQ(image.width, kWidth);
    const Pixels pixels = decoder.decode(window, 1000, test.channels);
    ASSERT_EQ(pixels.part_height, window.height);
    ASSERT_EQ(pixels.part_width, window.width);
    for (int y = 0; y < window.height; ++y) {
      for (int x = 0; x < window.width * test.channels; ++x) {
        const auto row = static_cast<std::ptrdiff_t>(pixels.top) + y;
        const auto column = static_cast<std::ptrdiff_t>(pixels.left) * test.channels + x;
        const int expected = whole[((window.top + y) * kWidth + window.left) * test.channels + x];
        ASSERT_EQ(int{pixels.data[row * pixels.row_bytes + column]}, expected)
            << "row " << y << ", value " << x << " of " << window.height << " x " << window.width << " at "
            << window.top << ", " << window.left;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, JpegWindows,
                         ::testing::Values(JpegCase{"colour", false, true, JpegColours::rgb, 3},
                                           JpegCase{"colour_in_full", false, false, JpegColours::rgb, 3},
                                           JpegCase{"progressive", true, true, JpegColours::rgb, 3},
                                           JpegCase{"grey", false, true, JpegColours::grey, 1},
                                           JpegCase{"grey_to_colour", false, true, JpegColours::grey, 3},
                                           JpegCase{"colour_to_grey", false, true, JpegColours::rgb, 1}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(JpegDecoder, DecodesNoLargerThanNeeded) {
  const auto jpeg = encode_jpeg({.height = 400, .width = 640}, picture(400, 640, 3));
  JpegDecoder decoder;
  const auto height_for = [&](int size) {
    const Window image = decoder.open(jpeg);
    const Pixels pixels = decoder.decode(image, size, 3);
    EXPECT_EQ(pixels.part_height * image.width, pixels.part_width * image.height);
    return pixels.height;
  };
  EXPECT_EQ(height_for(401), 400);
  EXPECT_EQ(height_for(201), 400);
  EXPECT_EQ(height_for(200), 200);
  EXPECT_EQ(height_for(100), 100);
  EXPECT_EQ(height_for(99), 100);
  EXPECT_EQ(height_for(1), 50);
}

TEST(JpegDecoder, ScaledImagesLookLikeTheWhole) {
  const auto jpeg = encode_jpeg({.height = 160, .width = 160, .subsampled = false}, picture(160, 160, 3));
  const auto whole = decode_whole(jpeg, 3);
  JpegDecoder decoder;
  decoder.open(jpeg);
  const Pixels half = decoder.decode({.top = 32, .left = 48, .height = 80, .width = 80}, 40, 3);
  ASSERT_EQ(half.part_height, 40);
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 40; ++x) {
      const auto at = [&](int dy, int dx) { return int{whole[((32 + 2 * y + dy) * 160 + 48 + 2 * x + dx) * 3]}; };
      const auto row = static_cast<std::ptrdiff_t>(half.top) + y, column = static_cast<std::ptrdiff_t>(half.left) + x;
      EXPECT_NEAR(half.data[row * half.row_bytes + column * 3], (at(0, 0) + at(0, 1) + at(1, 0) + at(1, 1)) / 4, 4);
    }
  }
}

// libjpeg writes them with Adobe's marker, and so inverted.
TEST(JpegDecoder, CmykBecomesRgb) {
  constexpr int kSide = 16;
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < kSide * kSide; ++i) pixels.insert(pixels.end(), {255, 128, 0, 200});
  const auto jpeg =
      encode_jpeg({.height = kSide, .width = kSide, .colours = JpegColours::cmyk, .quality = 100}, pixels);
  JpegDecoder decoder;
  const Pixels rgb = decoder.decode(decoder.open(jpeg), kSide, 3);
  EXPECT_NEAR(rgb.data[0], 200, 3);
  EXPECT_NEAR(rgb.data[1], 100, 3);
  EXPECT_NEAR(rgb.data[2], 0, 3);
  const Pixels grey = decoder.decode(decoder.open(jpeg), kSide, 1);
  EXPECT_EQ(grey.channels, 1);
  EXPECT_NEAR(grey.data[0], 0.299 * 200 + 0.587 * 100, 4);
}

std::string error_of(JpegDecoder& decoder, const std::vector<std::byte>& jpeg) {
  try {
    decoder.decode(decoder.open(jpeg), 1000, 3);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::failed);
    return error.what();
  }
  return "";
}

TEST(JpegDecoder, BrokenFilesAreErrorsInLibjpegsWords) {
  const auto good = encode_jpeg({.height = 64, .width = 64}, picture(64, 64, 3));
  JpegDecoder decoder;
  EXPECT_EQ(error_of(decoder, {}), "broken JPEG image: Empty input file");
  EXPECT_NE(error_of(decoder, std::vector<std::byte>(100, std::byte{7})).find("Not a JPEG file"), std::string::npos);
  auto cut = good;
  cut.resize(good.size() / 2);
  EXPECT_NE(error_of(decoder, cut).find("Premature end of JPEG file"), std::string::npos);
  EXPECT_EQ(error_of(decoder, good), "");  // as if nothing had been
}

// Bytes between the picture and its end marker: old cameras write them.
TEST(JpegDecoder, HarmlessOdditiesAreNoErrors) {
  auto jpeg = encode_jpeg({.height = 64, .width = 64}, picture(64, 64, 3));
  jpeg.insert(jpeg.end() - 2, 5, std::byte{0x55});
  JpegDecoder decoder;
  EXPECT_EQ(error_of(decoder, jpeg), "");
}

TEST(JpegDecoder, HugeImagesAreRefusedBeforeTheyAreRead) {
  auto jpeg = encode_jpeg({.height = 64, .width = 64, .progressive = true}, picture(64, 64, 3));
  for (std::size_t i = 0; i + 8 < jpeg.size(); ++i) {
    if (jpeg[i] == std::byte{0xff} && jpeg[i + 1] == std::byte{0xc2}) {  // the frame: height and width from byte 5 on
      for (std::size_t k = 5; k < 9; ++k) jpeg[i + k] = std::byte{0xf0};
      break;
    }
  }
  JpegDecoder decoder;
  EXPECT_NE(error_of(decoder, jpeg).find("JPEG image of 61680 x 61680 pixels"), std::string::npos);
}

// Whatever is wrong with a file: an error or an image, and the decoder goes on.
TEST(JpegDecoder, SurvivesMutatedFiles) {
  JpegDecoder decoder;
  for (const bool progressive : {false, true}) {
    const auto good = encode_jpeg({.height = 40, .width = 56, .progressive = progressive}, picture(40, 56, 3));
    for (std::uint64_t i = 0; i < 500; ++i) {
      auto bad = good;
      for (std::uint64_t k = 0; k < 1 + i % 4; ++k) {
        const RandomBlock random = philox(2, i, k);
        bad[random[0] % bad.size()] = static_cast<std::byte>(random[1]);
        if (random[2] % 8 == 0) bad.resize(1 + random[3] % bad.size());
      }
      error_of(decoder, bad);
    }
    EXPECT_EQ(error_of(decoder, good), "");
  }
}

}  // namespace
}  // namespace trireme::data
