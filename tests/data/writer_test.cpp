// Data sets written by us are what was given, whatever interrupted the writing.
#include "trireme/data/writer.hpp"

#include <gtest/gtest.h>

#include "tests/data/data_files.hpp"
#include "tests/data/memory_dataset.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/data/files.hpp"
#include "trireme/data/jpeg.hpp"
#include "trireme/data/survey.hpp"

namespace trireme::testkit {
namespace {

using data::open_dataset;
using data::Sample;
using data::Split;
using data::SplitSource;
using data::WriteOptions;

WriteOptions options_for(const std::string& folder, const std::string& format) {
  return {.format = format, .folder = folder, .origin = "test", .threads = 2, .stop = {}, .on_progress = {}};
}

TEST(Writer, IdxHoldsThePixels) {
  const TemporaryFolder folder;
  const auto drawn = data::draw_digits({.samples = 2100, .classes = 10, .height = 20, .width = 24});
  ASSERT_TRUE(write_dataset({{Split::train, drawn, 0}}, options_for(folder / "idx", "idx")));
  const auto dataset = open_dataset(folder / "idx", {});
  ASSERT_EQ(dataset->size(), 2100);
  Sample expected, sample;
  for (std::int64_t i = 0; i < dataset->size(); ++i) {
    drawn->read(i, expected);
    dataset->read(i, sample);
    ASSERT_EQ(sample.bytes, expected.bytes) << i;
    ASSERT_EQ(sample.label, expected.label) << i;
  }
}

TEST(Writer, JpegImagesAreTheSameInFoldersAndTfRecords) {
  const TemporaryFolder folder;
  write_drawn(folder / "folder", "folder");
  const auto images = open_dataset(folder / "folder", {});
  ASSERT_TRUE(write_dataset({{Split::train, images, 3}}, options_for(folder / "tfrecord", "tfrecord")));
  const auto records = open_dataset(folder / "tfrecord", {});
  ASSERT_EQ(records->size(), images->size());
  EXPECT_EQ(records->info().class_names, images->info().class_names);
  Sample expected, sample;
  for (std::int64_t i = 0; i < images->size(); ++i) {
    images->read(i, expected);
    records->read(i, sample);
    EXPECT_EQ(sample.bytes, expected.bytes) << i;
    EXPECT_EQ(sample.label, expected.label) << i;
  }
  // And back: sorted by class, as before.
  ASSERT_TRUE(write_dataset({{Split::train, records, 0}}, options_for(folder / "again", "folder")));
  const auto again = open_dataset(folder / "again", {});
  for (std::int64_t i = 0; i < images->size(); ++i) {
    images->read(i, expected);
    again->read(i, sample);
    EXPECT_EQ(sample.bytes, expected.bytes) << i;
  }
}

TEST(Writer, BoxesAreKept) {
  const TemporaryFolder folder;
  const auto drawn = data::draw_shapes({.samples = 3, .classes = 10, .height = 30, .width = 40});
  ASSERT_TRUE(write_dataset({{Split::train, drawn, 0}}, options_for(folder / "data", "tfrecord")));
  Sample expected, sample;
  drawn->read(2, expected);
  open_dataset(folder / "data", {})->read(2, sample);
  ASSERT_EQ(sample.boxes.size(), 1U);
  EXPECT_EQ(sample.boxes[0].top, expected.boxes[0].top);
  EXPECT_EQ(sample.boxes[0].right, expected.boxes[0].right);
}

TEST(Writer, LabelsWithoutNamesSortAsNumbers) {
  const TemporaryFolder folder;
  const auto source = std::make_shared<MemoryDataset>(jpeg_samples(12));
  ASSERT_TRUE(write_dataset({{Split::train, source, 0}}, options_for(folder / "data", "folder")));
  const auto dataset = open_dataset(folder / "data", {});
  ASSERT_EQ(dataset->info().classes, 12);
  EXPECT_EQ(dataset->info().class_names.at(2), "02");
  Sample sample;
  dataset->read(10, sample);
  EXPECT_EQ(sample.label, 10);
}

TEST(Writer, ThreadsDoNotChangeTheFiles) {
  const TemporaryFolder folder;
  for (const int threads : {1, 3}) {
    const auto drawn = data::draw_shapes({.samples = 40, .classes = 10, .height = 30, .width = 40});
    WriteOptions options = options_for(folder / std::to_string(threads), "tfrecord");
    options.threads = threads;
    ASSERT_TRUE(write_dataset({{Split::train, drawn, 4}}, options));
  }
  for (const char* file : {"train-00000-of-00004", "train-00003-of-00004"}) {
    EXPECT_EQ(read_text(folder / ("1/" + std::string(file))), read_text(folder / ("3/" + std::string(file))));
  }
}

TEST(Writer, RefusesAFolderWithOtherThings) {
  const TemporaryFolder folder;
  write_text(folder / "data/letter.txt", "dear");
  const auto drawn = data::draw_digits({.samples = 3});
  expect_error(ErrorKind::bad_input, {"exists and is not empty"}, [&] {
    write_dataset({{Split::train, drawn, 0}}, options_for(folder / "data", "idx"));
  });
  EXPECT_EQ(data::list_folder(folder / "data"), std::vector<std::string>{"letter.txt"});
  std::filesystem::create_directories(folder / "empty");
  EXPECT_TRUE(write_dataset({{Split::train, drawn, 0}}, options_for(folder / "empty/", "idx")));
  expect_error(ErrorKind::bad_input, {"unknown output format 'png'", "tfrecord, folder, idx"}, [&] {
    write_dataset({{Split::train, drawn, 0}}, options_for(folder / "x", "png"));
  });
  EXPECT_EQ(data::list_folder(folder.path()), (std::vector<std::string>{"data", "empty"}));
}

TEST(Writer, GoesOnWhereItWasStopped) {
  const TemporaryFolder folder;
  const std::string path = folder / "data";
  const auto drawn = data::draw_shapes({.samples = 40, .classes = 10, .height = 30, .width = 40});
  const std::vector<SplitSource> sources{{Split::train, drawn, 5}};
  std::stop_source stop;
  WriteOptions options = options_for(path, "tfrecord");
  options.threads = 1;
  options.stop = stop.get_token();
  options.on_progress = [&](std::int64_t done, std::int64_t) {
    if (done >= 16) stop.request_stop();
  };
  EXPECT_FALSE(write_dataset(sources, options));
  EXPECT_FALSE(std::filesystem::exists(path));
  const std::string first = path + ".unfinished/train-00000-of-00005";
  ASSERT_TRUE(std::filesystem::exists(first));
  write_text(path + ".unfinished/train-00003-of-00005.123-4.tmp", "half a shard");  // as a killed process leaves it
  const auto written = std::filesystem::last_write_time(first);

  WriteOptions other = options_for(path, "tfrecord");
  other.quality = 50;
  expect_error(ErrorKind::bad_input, {"data.unfinished", "other options or data"},
               [&] { write_dataset(sources, other); });

  ASSERT_TRUE(write_dataset(sources, options_for(path, "tfrecord")));
  EXPECT_EQ(std::filesystem::last_write_time(path + "/train-00000-of-00005"), written);
  EXPECT_FALSE(std::filesystem::exists(path + ".unfinished"));
  EXPECT_EQ(data::list_folder(path).size(), 6U);  // five files and classes.txt
  EXPECT_TRUE(data::survey(*open_dataset(path, {}), {.decode = true}).problems.empty());
}

TEST(Writer, IdxHoldsOneSizeOnly) {
  const TemporaryFolder folder;
  const auto source = std::make_shared<MemoryDataset>(jpeg_samples(3));
  expect_error(
      ErrorKind::bad_input,
      {"memory, sample 1 has 49x41 pixels, but the first image has 50x40: all images in idx must have the same size"},
      [&] {
        write_dataset({{Split::train, source, 0}}, options_for(folder / "data", "idx"));
      });
  EXPECT_TRUE(data::list_folder(folder.path()).empty());  // nothing half-written
}

TEST(Writer, ABrokenSampleIsNamed) {
  const TemporaryFolder folder;
  const auto source = std::make_shared<MemoryDataset>(jpeg_samples(3));
  source->unreadable.insert(2);
  expect_error(ErrorKind::failed, {"memory, sample 2: cannot be read"}, [&] {
    write_dataset({{Split::train, source, 0}}, options_for(folder / "data", "tfrecord"));
  });
  EXPECT_TRUE(data::list_folder(folder.path()).empty());  // nothing in the way of a run without this sample
}

TEST(Drawn, DependsOnSeedSplitAndNumberAlone) {
  const auto read = [](std::uint64_t seed, Split split, std::int64_t samples) {
    Sample sample;
    data::draw_digits({.split = split, .samples = samples, .seed = seed})->read(5, sample);
    return sample.bytes;
  };
  EXPECT_EQ(read(1, Split::train, 10), read(1, Split::train, 999));
  EXPECT_NE(read(1, Split::train, 10), read(2, Split::train, 10));
  EXPECT_NE(read(1, Split::train, 10), read(1, Split::validation, 10));
}

TEST(Drawn, ClassesAreBalancedAndNamed) {
  const auto drawn = data::draw_shapes({.samples = 250, .classes = 125, .height = 16, .width = 16});
  const data::Survey survey = data::survey(*drawn, {});
  EXPECT_EQ(survey.labels.size(), 125U);
  EXPECT_EQ(survey.labels.at(124), 2);
  EXPECT_EQ(drawn->info().class_names.at(124), "cross-checked-square");
  expect_error(ErrorKind::bad_input, {"11 classes of digits; there are 2 to 10"},
               [] { data::draw_digits({.samples = 1, .classes = 11}); });
}

TEST(Survey, NamesBrokenSamples) {
  std::vector<Sample> samples = jpeg_samples(200);
  samples[150].bytes.resize(samples[150].bytes.size() - 40);
  samples[7].bytes.assign(50, std::byte{'x'});
  const MemoryDataset dataset(std::move(samples));
  const data::Survey headers = data::survey(dataset, {.threads = 2});
  EXPECT_EQ(headers.samples, 200);
  EXPECT_EQ(headers.problems.size(), 1U);  // a file that is cut off has a whole header
  const data::Survey whole = data::survey(dataset, {.decode = true, .threads = 2});
  ASSERT_EQ(whole.problems.size(), 2U);
  EXPECT_EQ(whole.problems.at(7).rfind("memory, sample 7: broken JPEG image: Not a JPEG file", 0), 0U)
      << whole.problems.at(7);
  EXPECT_EQ(whole.problems.at(150).rfind("memory, sample 150: broken JPEG image", 0), 0U);
  EXPECT_EQ(data::survey(dataset, {.most_samples = 30}).samples, 30);
}

TEST(JpegEncoder, RefusesWhatIsNoImage) {
  Sample sample;
  sample.height = sample.width = 4;
  sample.channels = 2;
  std::vector<std::byte> jpeg;
  expect_error(ErrorKind::bad_input, {"4 x 4 pixels of 2 channels", "1 or 3 channels"},
               [&] { data::encode_jpeg(sample, 90, jpeg); });
}

}  // namespace
}  // namespace trireme::testkit
