// What open_dataset() finds, and what it says where it finds nothing.
#include "trireme/data/formats.hpp"

#include <gtest/gtest.h>

#include "tests/data/data_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trireme::testkit {
namespace {

using data::open_dataset;
using data::Split;

TEST(Formats, AreToldByTheirFiles) {
  const TemporaryFolder folder;
  for (const std::string format : {"idx", "folder", "tfrecord"}) {
    write_drawn(folder / format, format);
    const data::Contents contents = data::look_into(folder / format);
    EXPECT_EQ(contents.format, format);
    EXPECT_EQ(contents.splits, (std::vector{Split::train, Split::validation}));
    EXPECT_EQ(open_dataset(folder / format, {})->size(), 23);
    EXPECT_EQ(open_dataset(folder / format, {.split = Split::validation})->size(), 7);
    EXPECT_EQ(open_dataset(folder / format, {.name = format})->info().classes, 5);
  }
}

TEST(Formats, MessagesSayWhatWasLookedForAndWhatIsThere) {
  const TemporaryFolder folder;
  expect_error(ErrorKind::bad_input, {"there is no folder or file", "nowhere"},
               [&] { open_dataset(folder / "nowhere", {}); });
  expect_error(ErrorKind::bad_input,
               {"holds no data set", "train-*-of-*", "train/<class>/*.jpg", "train-images-idx3-ubyte",
                "data_batch_1.bin", "it holds nothing"},
               [&] { open_dataset(folder.path(), {}); });
  write_text(folder / "notes.txt", "");
  expect_error(ErrorKind::bad_input, {"looked for idx", "it holds notes.txt"},
               [&] { open_dataset(folder.path(), {.name = "idx"}); });
  expect_error(ErrorKind::bad_input, {"unknown data format 'lmdb'", "auto, tfrecord, folder, idx, cifar10"},
               [&] { open_dataset(folder.path(), {.name = "lmdb"}); });
  expect_error(ErrorKind::bad_input, {"notes.txt' is a file", "train-images-idx3-ubyte"},
               [&] { open_dataset(folder / "notes.txt", {.name = "idx"}); });
}

TEST(Formats, AMissingSplitIsNamed) {
  const TemporaryFolder folder;
  write_drawn(folder / "idx", "idx");
  std::filesystem::remove(folder / "idx/t10k-images-idx3-ubyte");
  EXPECT_EQ(data::look_into(folder / "idx").splits, std::vector{Split::train});
  expect_error(ErrorKind::bad_input, {"has no validation data", "t10k-images-idx3-ubyte"},
               [&] { open_dataset(folder / "idx", {.split = Split::validation}); });
}

}  // namespace
}  // namespace trireme::testkit
