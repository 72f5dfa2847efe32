#include "trireme/train/event_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"
#include "trireme/data/record_file.hpp"

namespace trireme::train {
namespace {

using testkit::TemporaryFolder;

std::vector<std::string> records_of(const std::string& path) {
  const data::InputFile file(path);
  const data::RecordIndex index = data::index_records(file);
  EXPECT_FALSE(index.problem) << *index.problem;
  std::vector<std::string> records;
  std::vector<std::byte> buffer;
  for (const data::RecordPlace& place : index.records) {
    const auto data = read_record(file, place, buffer);
    records.emplace_back(reinterpret_cast<const char*>(data.data()), data.size());
  }
  return records;
}

// Skips where this build has no protobuf.
std::unique_ptr<EventFile> open_events(const std::string& folder) {
  try {
    return std::make_unique<EventFile>(folder);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unavailable) throw;
    return nullptr;
  }
}

TEST(EventFile, HoldsRecordsAsTensorBoardReadsThem) {
  const TemporaryFolder folder;
  const auto events = open_events(folder / "new/run");
  if (events == nullptr) GTEST_SKIP() << "this build has no protobuf";
  events->add({.tag = "loss", .step = 5, .value = 0.5f, .wall_seconds = 1.5});
  EXPECT_EQ(records_of(events->path()).size(), 1U);  // not before it is asked to
  events->flush();

  const auto records = records_of(events->path());
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].substr(9), std::string("\x1a\x0d") + "brain.Event:2");  // after the time: field 3, 13 bytes
  using namespace std::string_literals;
  EXPECT_EQ(records[1],
            "\x09\0\0\0\0\0\0\xf8\x3f"s  // field 1: 1.5 as a double
            "\x10\x05"s                  // field 2: 5
            "\x2a\x0d\x0a\x0b"s          // field 5, and in it field 1: the summary's value
            "\x0a\x04loss"s              // field 1
            "\x15\0\0\0\x3f"s);          // field 2: 0.5 as a float
  const std::string name = std::filesystem::path(events->path()).filename();
  EXPECT_EQ(name.rfind("events.out.tfevents.", 0), 0U) << name;
}

TEST(EventFile, IsANewOneEveryTime) {
  const TemporaryFolder folder;
  const auto first = open_events(folder.path());
  if (first == nullptr) GTEST_SKIP() << "this build has no protobuf";
  const auto second = open_events(folder.path());
  EXPECT_NE(first->path(), second->path());
}

TEST(EventFile, KeepsWhatAFullDiskRefuses) {
  const TemporaryFolder folder;
  const auto events = open_events(folder.path());
  if (events == nullptr) GTEST_SKIP() << "this build has no protobuf";
  for (int step = 0; step < 100; ++step) events->add("loss", step, 1.0f);

  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);  // then a write fails
  const rlimit small{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(events->flush(), Error);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);

  events->flush();
  EXPECT_EQ(records_of(events->path()).size(), 101U);
}

TEST(EventFile, RefusesAFolderThatCannotBeWritten) {
  const TemporaryFolder folder;
  if (open_events(folder.path()) == nullptr) GTEST_SKIP() << "this build has no protobuf";
  try {
    const EventFile events("/proc/no/folder");
    FAIL() << "there is no such folder";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    EXPECT_NE(std::string(error.what()).find("/proc/no/folder/events.out.tfevents."), std::string::npos);
  }
}

}  // namespace
}  // namespace trireme::train
