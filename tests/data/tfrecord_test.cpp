#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <thread>

#include "tests/data/data_files.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/data/class_names.hpp"
#include "trireme/data/record_file.hpp"

namespace trireme::testkit {
namespace {

using data::open_dataset;
using data::Sample;
using data::Split;

// A tf.Example put together by hand, on the wire: what others write need not be what our writer does.
std::string field(int number, const std::string& content) {
  std::string text(1, static_cast<char>((number << 3) | 2));
  std::size_t length = content.size();
  for (; length >= 128; length >>= 7) text.push_back(static_cast<char>((length & 0x7f) | 0x80));
  text.push_back(static_cast<char>(length));
  return text + content;
}
std::string feature(const std::string& key, const std::string& value) {
  return field(1, field(1, key) + field(2, value));
}
std::string bytes_value(const std::string& value) { return field(1, field(1, value)); }
std::string integer_value(char value) { return field(3, field(1, std::string(1, value))); }
std::string float_values(const std::vector<float>& values) {
  return field(2, field(1, std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float))));
}
std::string example(const std::string& features) { return field(1, features); }

const std::string kImage = feature("image/encoded", bytes_value("JPEG bytes"));
const std::string kLabel = feature("image/class/label", integer_value(7));

std::string boxes(const std::vector<float>& top, const std::vector<float>& bottom) {
  const std::vector<float> left(top.size(), .25f), right(top.size(), .5f);
  return feature("image/object/bbox/ymin", float_values(top)) + feature("image/object/bbox/xmin", float_values(left)) +
         feature("image/object/bbox/ymax", float_values(bottom)) +
         feature("image/object/bbox/xmax", float_values(right));
}

void write_records(const std::string& path, const std::vector<std::string>& records) {
  std::string text;
  std::vector<std::byte> frame;
  for (const std::string& record : records) {
    data::frame_record(std::as_bytes(std::span(record)), frame);
    text.append(reinterpret_cast<const char*>(frame.data()), frame.size());
  }
  write_text(path, text);
}

TEST(TfRecord, ReadsExamplesOfOthers) {
  const TemporaryFolder folder;
  write_records(folder / "train.tfrecord",
                {example(kLabel + kImage), example(boxes({.1f, -1, .5f}, {.9f, 2, .5f}) + kImage +
                                                   feature("image/format", bytes_value("jpg")) + kLabel)});
  const auto dataset = open_dataset(folder.path(), {});
  ASSERT_EQ(dataset->size(), 2);
  Sample sample;
  dataset->read(1, sample);
  EXPECT_EQ(sample.label, 7);
  EXPECT_EQ(sample.encoding, data::Encoding::jpeg);
  EXPECT_EQ(sample.bytes.size(), 10U);
  ASSERT_EQ(sample.boxes.size(), 2U);  // the one without area is left out
  EXPECT_FLOAT_EQ(sample.boxes[0].top, .1f);
  EXPECT_FLOAT_EQ(sample.boxes[0].left, .25f);
  EXPECT_FLOAT_EQ(sample.boxes[1].top, 0);
  EXPECT_FLOAT_EQ(sample.boxes[1].bottom, 1);
  dataset->read(0, sample);
  EXPECT_TRUE(sample.boxes.empty());
  EXPECT_EQ(open_dataset(folder / "train.tfrecord", {})->size(), 2);
}

TEST(TfRecord, BrokenExamplesAreNamedWithFileAndPlace) {
  const TemporaryFolder folder;
  const auto expect = [&](const std::string& record, std::string_view what) {
    write_records(folder / "train.tfrecord", {example(kImage + kLabel), record});
    const auto dataset = open_dataset(folder.path(), {});
    Sample sample;
    dataset->read(0, sample);
    expect_error(ErrorKind::failed, {"train.tfrecord, byte 79: ", what}, [&] { dataset->read(1, sample); });
  };
  expect("no example", "the record is not a tf.Example");
  expect(example(kLabel), "the key image/encoded is missing");
  expect(example(kImage), "the key image/class/label is missing");
  expect(example(kImage + feature("image/class/label", integer_value(-1))), "tf.Example");
  expect(example(kImage + feature("image/class/label", bytes_value("7"))), "the key image/class/label is missing");
  expect(example(kImage + kLabel + feature("image/format", bytes_value("PNG"))), "image/format is 'PNG'");
  expect(example(kImage + kLabel + boxes({0, 0}, {1})), "2 ymin, 2 xmin, 1 ymax, 2 xmax");
}

TEST(TfRecord, BrokenFramesAreNamedWithFileAndPlace) {
  const TemporaryFolder folder;
  const std::string path = folder / "train.tfrecord";
  const std::vector<std::string> records{example(kImage + kLabel), example(kImage + kLabel)};
  const auto open_broken = [&](std::string_view what) {
    expect_error(ErrorKind::bad_input, {"train.tfrecord, byte 79: ", what}, [&] { open_dataset(folder.path(), {}); });
  };
  write_records(path, records);
  const std::string whole = read_text(path);
  ASSERT_EQ(whole.size(), 158U);
  change_byte(path, 79);
  open_broken("the CRC of the record's length is wrong");
  write_text(path, whole.substr(0, 85));
  open_broken("the file ends inside a record, 6 bytes after its start");
  write_text(path, whole.substr(0, 140));
  open_broken("a record of 63 bytes, but the file ends after 49");

  // Who asks to be told gets what comes before.
  std::vector<std::string> told;
  const auto part =
      open_dataset(folder.path(), {.on_broken_file = [&](const std::string& problem) { told.push_back(problem); }});
  EXPECT_EQ(part->size(), 1);
  EXPECT_EQ(told.size(), 1U);

  write_text(path, whole);
  change_byte(path, 120);
  const auto dataset = open_dataset(folder.path(), {});
  Sample sample;
  dataset->read(0, sample);
  expect_error(ErrorKind::failed, {"train.tfrecord, byte 79: the CRC of the record's data is wrong"},
               [&] { dataset->read(1, sample); });
  EXPECT_EQ(dataset->where(1), "train.tfrecord, byte 79");
}

// By what they begin with, whatever they are called: TensorFlow's compression types GZIP and ZLIB.
TEST(TfRecord, CompressedFilesAreRead) {
  const TemporaryFolder folder;
  write_drawn(folder / "plain", "tfrecord");
  write_drawn(folder / "gz", "tfrecord");
  write_drawn(folder / "zlib", "tfrecord");
  ASSERT_EQ(std::system(("gzip " + (folder / "gz/train-*")).c_str()), 0);
  ASSERT_EQ(std::system(("gzip " + (folder / "zlib/train-00000-of-00003")).c_str()), 0);
  std::filesystem::rename(folder / "zlib/train-00000-of-00003.gz", folder / "zlib/train-00000-of-00003");
  const std::string text = read_text(folder / "zlib/train-00001-of-00003");
  uLongf bytes = compressBound(text.size());
  std::string compressed(bytes, '\0');
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(compressed.data()), &bytes, reinterpret_cast<const Bytef*>(text.data()),
                     text.size()),
            Z_OK);
  write_text(folder / "zlib/train-00001-of-00003", compressed.substr(0, bytes));

  const auto plain = open_dataset(folder / "plain", {});
  for (const char* name : {"gz", "zlib"}) {
    const auto dataset = open_dataset(folder / name, {});
    ASSERT_EQ(dataset->size(), plain->size()) << name;
    Sample sample, expected;
    for (std::int64_t i = dataset->size() - 1; i >= 0; --i) {
      dataset->read(i, sample);
      plain->read(i, expected);
      EXPECT_EQ(sample.bytes, expected.bytes) << name << i;
      EXPECT_EQ(sample.label, expected.label) << name << i;
    }
  }
  EXPECT_EQ(open_dataset(folder / "gz", {})->where(0), "train-00000-of-00003.gz (uncompressed), byte 0");
}

TEST(TfRecord, JoinedFilesOfGzipAreOne) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"}) write_records(folder / name, {example(kImage + kLabel)});
  ASSERT_EQ(std::system(
                fmt::format("cd {} && gzip a b && cat a.gz b.gz > train.tfrecord.gz", folder.path().string()).c_str()),
            0);
  EXPECT_EQ(open_dataset(folder.path(), {})->size(), 2);
}

TEST(TfRecord, ACompressedFileThatIsBrokenHasWhatComesBefore) {
  const TemporaryFolder folder;
  const std::string path = folder / "train.tfrecord.gz";
  std::string noise;  // does not get smaller
  for (std::uint32_t i = 0, value = 1; i < 40'000; ++i, value = value * 1664525 + 1013904223) {
    noise.push_back(static_cast<char>(value >> 24));
  }
  write_records(folder / "train.tfrecord", {example(kImage + kLabel), example(kImage + kLabel), noise});
  ASSERT_EQ(std::system(("gzip " + (folder / "train.tfrecord")).c_str()), 0);
  const std::string whole = read_text(path);
  ASSERT_GT(whole.size(), 35'000U);
  write_text(path, whole.substr(0, 30'000));
  expect_error(ErrorKind::bad_input, {"train.tfrecord.gz, byte 30000: the gzip stream is cut off"},
               [&] { open_dataset(folder.path(), {}); });
  std::vector<std::string> told;
  const auto part =
      open_dataset(folder.path(), {.on_broken_file = [&](const std::string& problem) { told.push_back(problem); }});
  EXPECT_EQ(part->size(), 2);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find("the gzip stream is cut off"), std::string::npos) << told[0];
}

TEST(TfRecord, ACompressedFileThatThereIsNoRoomForIsRefused) {
  const TemporaryFolder folder;
  write_records(folder / "train.tfrecord", {example(kImage + kLabel)});
  ASSERT_EQ(std::system(("gzip " + (folder / "train.tfrecord")).c_str()), 0);
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  setenv("TMPDIR", (folder / "none").c_str(), 1);
  expect_error(ErrorKind::bad_input, {"train.tfrecord.gz' is compressed", folder / "none", "set TMPDIR to a folder"},
               [&] { open_dataset(folder.path(), {}); });
  before != nullptr ? setenv("TMPDIR", kept.c_str(), 1) : unsetenv("TMPDIR");
}

TEST(TfRecord, ClassesAreCalledWhatTheirSamplesSay) {
  const TemporaryFolder folder;
  write_records(folder / "train.tfrecord",
                {example(kImage + kLabel + feature("image/class/text", bytes_value("crane"))),
                 example(kImage + feature("image/class/label", integer_value(3)) +
                         feature("image/class/text", bytes_value("crane"))),
                 example(kImage + feature("image/class/label", integer_value(4)) +
                         feature("image/class/text", bytes_value("../a\nb")))});
  const auto dataset = open_dataset(folder.path(), {});
  Sample sample;
  dataset->read(0, sample);
  EXPECT_EQ(sample.class_text, "crane");
  data::ClassTexts texts;
  for (std::int64_t i = 0; i < dataset->size(); ++i) {
    dataset->read(i, sample);
    data::add_text(texts, sample.label, sample.class_text);
  }
  // A line each, and a folder's name each.
  EXPECT_EQ(data::names_from_texts(texts, 8),
            (std::vector<std::string>{"0", "1", "2", "crane", "_.. a b", "5", "6", "crane (7)"}));
  EXPECT_TRUE(data::names_from_texts({{0, "0"}, {1, ""}}, 2).empty()) << "numbers are no names";
}

TEST(TfRecord, SetsMustBeComplete) {
  const TemporaryFolder folder;
  write_drawn(folder / "a", "tfrecord", 4);
  std::filesystem::remove(folder / "a/train-00002-of-00004");
  expect_error(ErrorKind::bad_input, {"found 3 of 4 files", "number 2 is missing"},
               [&] { open_dataset(folder / "a", {}); });
  write_drawn(folder / "b", "tfrecord", 4);
  write_text(folder / "b/train-00000-of-00001", "");
  expect_error(ErrorKind::bad_input, {"several sets of TFRecords"}, [&] { open_dataset(folder / "b", {}); });
}

TEST(TfRecord, LabelsMustHaveNames) {
  const TemporaryFolder folder;
  write_records(folder / "train.tfrecord", {example(kImage + kLabel)});
  write_text(folder / "classes.txt", "a\nb\n");
  Sample sample;
  expect_error(ErrorKind::failed, {"train.tfrecord, byte 0: the label is 7, but classes.txt names only 2 classes"},
               [&] { open_dataset(folder.path(), {})->read(0, sample); });
}

TEST(TfRecord, ThreadsReadAtTheSameTime) {
  const TemporaryFolder folder;
  write_drawn(folder / "data", "tfrecord");
  const auto dataset = open_dataset(folder / "data", {});
  std::vector<Sample> expected(23);
  for (std::int64_t i = 0; i < 23; ++i) dataset->read(i, expected[i]);
  std::vector<int> wrong(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < wrong.size(); ++thread) {
      threads.emplace_back([&, thread] {
        Sample sample;
        for (std::int64_t i = 0; i < 100; ++i) {
          const std::int64_t index = (i * 7 + static_cast<std::int64_t>(thread)) % 23;
          dataset->read(index, sample);
          if (sample.bytes != expected[index].bytes) ++wrong[thread];
        }
      });
    }
  }
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(TfRecord, FilesOfImageNetsSchema) {
  const std::string folder = shared_data("tfrecord-imagenet-fake");
  if (folder.empty()) GTEST_SKIP() << "no TFRecords of others here";
  const auto dataset = open_dataset(folder, {});
  EXPECT_EQ(dataset->size(), 512);
  Sample sample;
  for (std::int64_t i = 0; i < dataset->size(); ++i) {
    dataset->read(i, sample);
    ASSERT_LT(sample.label, 10);
    ASSERT_EQ(sample.boxes.size(), 1U);
    ASSERT_GT(sample.bytes.size(), 100U);
  }
  EXPECT_EQ(open_dataset(folder, {.split = Split::validation})->size(), 128);
}

}  // namespace
}  // namespace trireme::testkit
