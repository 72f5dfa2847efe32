// The readers of pixels: idx and CIFAR-10.
#include <gtest/gtest.h>

#include "tests/data/data_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trireme::testkit {
namespace {

using data::open_dataset;
using data::Sample;
using data::Split;
using namespace std::string_literals;

const std::string kImageHeader = "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03"s;  // two images of 1 x 3 pixels
const std::string kLabelHeader = "\0\0\x08\x01\0\0\0\x02"s;

struct IdxFolder {
  TemporaryFolder folder;
  IdxFolder(const std::string& images, const std::string& labels) {
    write_text(folder / "train-images-idx3-ubyte", images);
    write_text(folder / "train-labels-idx1-ubyte", labels);
  }
  std::shared_ptr<const data::Dataset> open() const { return open_dataset(folder.path(), {}); }
};

TEST(Idx, ReadsImagesAndLabels) {
  const IdxFolder data(kImageHeader + "abcdef", kLabelHeader + "\x03\x01");
  const auto dataset = data.open();
  EXPECT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->info().classes, 4);
  Sample sample;
  dataset->read(1, sample);
  EXPECT_EQ(sample.height, 1);
  EXPECT_EQ(sample.width, 3);
  EXPECT_EQ(sample.channels, 1);
  EXPECT_EQ(sample.label, 1);
  EXPECT_EQ(sample.bytes, (std::vector{std::byte{'d'}, std::byte{'e'}, std::byte{'f'}}));
  EXPECT_EQ(dataset->where(1), "train-images-idx3-ubyte, image 1");
}

TEST(Idx, ReadsCompressedFilesAndNamesWithDots) {
  const TemporaryFolder folder;
  write_text(folder / "train-images.idx3-ubyte", kImageHeader + "abcdef");
  write_text(folder / "train-labels-idx1-ubyte", kLabelHeader + "\x03\x01");
  ASSERT_EQ(std::system(("gzip " + (folder / "*")).c_str()), 0);
  const auto dataset = open_dataset(folder.path(), {});
  Sample sample;
  dataset->read(0, sample);
  EXPECT_EQ(sample.bytes[2], std::byte{'c'});
  EXPECT_EQ(sample.label, 3);

  std::string compressed = read_text(folder / "train-images.idx3-ubyte.gz");
  write_text(folder / "train-images.idx3-ubyte.gz", compressed.substr(0, compressed.size() - 10));
  expect_error(ErrorKind::bad_input, {"train-images.idx3-ubyte.gz, byte", "the gzip stream is cut off"},
               [&] { open_dataset(folder.path(), {}); });
}

TEST(Idx, ACompressedFileCannotAskForMoreThanItHolds) {
  const TemporaryFolder folder;
  write_text(folder / "train-images-idx3-ubyte", "\0\0\x08\x03\x10\0\0\0\0\0\x10\0\0\0\x10\0"s);  // 4e15 bytes
  write_text(folder / "train-labels-idx1-ubyte", kLabelHeader + "\x03\x01");
  ASSERT_EQ(std::system(("gzip " + (folder / "train-images-idx3-ubyte")).c_str()), 0);
  expect_error(ErrorKind::bad_input,
               {"train-images-idx3-ubyte.gz: 4503599627370512 bytes cannot come from a gzip file"},
               [&] { open_dataset(folder.path(), {}); });
}

TEST(Idx, BrokenFilesAreNamedWithWhatIsWrong) {
  const auto expect = [](const std::string& images, const std::string& labels, std::string_view part) {
    const IdxFolder data(images, labels);
    expect_error(ErrorKind::bad_input, {part}, [&] { data.open(); });
  };
  const std::string images = kImageHeader + "abcdef", labels = kLabelHeader + "\x03\x01";
  expect(images.substr(0, 7), labels, "images-idx3-ubyte: the file ends at byte 7, inside its header of 16 bytes");
  expect(labels + images, labels, "byte 0: the magic number is 0x00000801; 0x00000803 was expected");
  expect(images + "g", labels, "images-idx3-ubyte: the file has 23 bytes, but its header says 22");
  expect("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s, labels,
         "byte 8: 4294967295 values along axis 1 are more than a file can hold");
  expect("\0\0\x08\x03\0\0\0\x02\0\0\0\0\0\0\0\x05"s, labels, "images of 0x5 pixels");
  expect(images, "\0\0\x08\x01\0\0\0\x01\x07"s, "has 1 labels, but");
  expect(images, labels.substr(0, 9), "labels-idx1-ubyte: the file has 9 bytes, but its header says 10");
}

TEST(Idx, LabelsMustHaveNames) {
  const IdxFolder data(kImageHeader + "abcdef", kLabelHeader + "\x03\x01");
  write_text(data.folder / "classes.txt", "a\nb\nc\nd\ne\n\n");
  EXPECT_EQ(data.open()->info().classes, 5);
  write_text(data.folder / "classes.txt", "a\nb\n");
  expect_error(ErrorKind::bad_input, {"there is a label 3, but classes.txt names only 2 classes"},
               [&] { data.open(); });
  write_text(data.folder / "classes.txt", "a\nb\na\nd\n");
  expect_error(ErrorKind::bad_input, {"classes.txt, line 3: the class 'a' is listed twice"}, [&] { data.open(); });
}

TEST(Idx, Mnist) {
  const std::string folder = shared_data("mnist");
  if (folder.empty()) GTEST_SKIP() << "no MNIST here";
  const auto dataset = open_dataset(folder, {});
  EXPECT_EQ(dataset->size(), 60000);
  EXPECT_EQ(dataset->info().classes, 10);
  Sample sample;
  dataset->read(59999, sample);
  EXPECT_EQ(sample.label, 8);
  EXPECT_EQ(sample.bytes.size(), 784U);
  EXPECT_EQ(open_dataset(folder, {.split = Split::validation})->size(), 10000);
}

constexpr std::size_t kCifarRecord = 3073;

// Records whose red, green and blue planes hold one value each.
std::string cifar_file(const std::vector<int>& labels) {
  std::string text;
  for (const int label : labels) {
    text.push_back(static_cast<char>(label));
    for (const char value : {'r', 'g', 'b'}) text.append(1024, value);
  }
  return text;
}

void write_cifar(const TemporaryFolder& folder) {
  for (int i = 1; i <= 5; ++i) {
    write_text(folder / ("data_batch_" + std::to_string(i) + ".bin"), cifar_file({i, 2 * i % 10}));
  }
  write_text(folder / "test_batch.bin", cifar_file({9}));
}

TEST(Cifar, ReadsAllFilesWithChannelsLast) {
  const TemporaryFolder folder;
  write_cifar(folder);
  write_text(folder / "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  const auto dataset = open_dataset(folder.path(), {});
  EXPECT_EQ(dataset->info().format, "cifar10");
  EXPECT_EQ(dataset->info().class_names.at(9), "j");
  EXPECT_EQ(dataset->size(), 10);
  Sample sample;
  dataset->read(7, sample);
  EXPECT_EQ(sample.label, 8);
  EXPECT_EQ(dataset->where(7), "data_batch_4.bin, byte 3073");
  EXPECT_EQ(sample.bytes[0], std::byte{'r'});
  EXPECT_EQ(sample.bytes[1], std::byte{'g'});
  EXPECT_EQ(sample.bytes[3071], std::byte{'b'});
  EXPECT_EQ(open_dataset(folder.path(), {.split = Split::validation})->size(), 1);
}

TEST(Cifar, BrokenFilesAreNamedWithThePlace) {
  const TemporaryFolder folder;
  write_cifar(folder);
  write_text(folder / "data_batch_3.bin", cifar_file({1, 77}));
  const auto dataset = open_dataset(folder.path(), {});
  Sample sample;
  dataset->read(4, sample);
  expect_error(ErrorKind::failed, {"data_batch_3.bin, byte 3073: the label is 77; labels are below 10"},
               [&] { dataset->read(5, sample); });

  write_text(folder / "data_batch_3.bin", cifar_file({1, 7}).substr(0, kCifarRecord + 5));
  expect_error(ErrorKind::bad_input, {"data_batch_3.bin, byte 3078: the file ends inside a record of 3073 bytes"},
               [&] { open_dataset(folder.path(), {}); });
  std::filesystem::remove(folder / "data_batch_3.bin");
  expect_error(ErrorKind::bad_input, {"there is no '", "data_batch_3.bin'", "the folder holds data_batch_1.bin"},
               [&] { open_dataset(folder.path(), {}); });
}

}  // namespace
}  // namespace trireme::testkit
