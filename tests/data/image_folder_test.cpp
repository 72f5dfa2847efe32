#include <gtest/gtest.h>

#include "tests/data/data_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trireme::testkit {
namespace {

using data::open_dataset;
using data::Sample;
using data::Split;

TEST(ImageFolder, ClassesAndFilesAreSorted) {
  const TemporaryFolder folder;
  for (const char* file : {"train/cat/2.jpg", "train/cat/1.JPEG", "train/ant/x.jpg", "train/cat/notes.txt",
                           "train/cat/.hidden.jpg", "val/bee/y.jpg"}) {
    write_text(folder / file, file);
  }
  const auto dataset = open_dataset(folder.path(), {});
  EXPECT_EQ(dataset->info().class_names, (std::vector<std::string>{"ant", "bee", "cat"}));
  ASSERT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->where(1), folder / "train/cat/1.JPEG");
  Sample sample;
  dataset->read(2, sample);
  EXPECT_EQ(sample.label, 2);
  EXPECT_EQ(sample.encoding, data::Encoding::jpeg);
  EXPECT_EQ(sample.bytes.size(), std::string_view("train/cat/2.jpg").size());
  // A label means the same in both splits.
  open_dataset(folder.path(), {.split = Split::validation})->read(0, sample);
  EXPECT_EQ(sample.label, 1);
}

TEST(ImageFolder, ClassesFileGivesTheOrder) {
  const TemporaryFolder folder;
  write_text(folder / "train/ant/x.jpg", "x");
  write_text(folder / "classes.txt", "cat\nant\n");
  Sample sample;
  open_dataset(folder.path(), {})->read(0, sample);
  EXPECT_EQ(sample.label, 1);
  write_text(folder / "train/dog/x.jpg", "x");
  expect_error(ErrorKind::bad_input, {"train/dog' is not a class in classes.txt"},
               [&] { open_dataset(folder.path(), {}); });
}

TEST(ImageFolder, BrokenFilesAreBrokenSamples) {
  const TemporaryFolder folder;
  write_text(folder / "train/ant/1.jpg", "x");
  write_text(folder / "train/ant/2.jpg", "");
  const auto dataset = open_dataset(folder.path(), {});
  Sample sample;
  expect_error(ErrorKind::failed, {"train/ant/2.jpg: the file is empty"}, [&] { dataset->read(1, sample); });
  std::filesystem::remove(folder / "train/ant/1.jpg");
  expect_error(ErrorKind::failed, {"cannot open", "train/ant/1.jpg", "No such file"},
               [&] { dataset->read(0, sample); });
}

TEST(ImageFolder, FilesOfOtherTypesAreCountedAndNamed) {
  const TemporaryFolder folder;
  for (const char* file : {"train/cat/1.jpg", "train/cat/2.png", "train/cat/3.PNG", "train/ant/README", "train/x.jpg",
                           "train/ant/more/4.jpg"}) {
    write_text(folder / file, file);
  }
  const auto dataset = open_dataset(folder.path(), {});
  EXPECT_EQ(data::other_files_text(dataset->info()),
            fmt::format("are 5 files that are not JPEG images in class folders and are skipped: 1 without an ending "
                        "(such as {0}/train/ant/README), 1 .jpg (such as {0}/train/x.jpg), 2 .png (such as "
                        "{0}/train/cat/2.png), 1 folder (such as {0}/train/ant/more)",
                        folder.path().string()));
}

TEST(ImageFolder, WithoutImagesIsAnError) {
  const TemporaryFolder folder;
  write_text(folder / "train/ant/x.png", "x");
  expect_error(ErrorKind::bad_input, {"has no JPEG files", "it holds ant", "1 .png (such as"},
               [&] { open_dataset(folder.path(), {}); });
}

TEST(ImageFolder, Flowers) {
  const std::string folder = shared_data("flower-photos");
  if (folder.empty()) GTEST_SKIP() << "no photographs here";
  const auto dataset = open_dataset(folder, {});
  EXPECT_EQ(dataset->size(), 240);
  EXPECT_EQ(dataset->info().classes, 5);
  EXPECT_EQ(open_dataset(folder, {.split = Split::validation})->size(), 60);
}

}  // namespace
}  // namespace trireme::testkit
