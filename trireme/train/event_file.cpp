#include "trireme/train/event_file.hpp"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <tuple>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/comm/host.hpp"
#include "trireme/data/record_file.hpp"
#include "trireme/features.hpp"
#if TRIREME_WITH_PROTOBUF
#include "trireme/train/event.pb.h"
#endif

namespace trireme::train {
namespace {

#if TRIREME_WITH_PROTOBUF
std::string version_message(double wall_seconds) {
  pb::Event message;
  message.set_wall_time(wall_seconds);
  message.set_file_version("brain.Event:2");  // as in TensorFlow's own files
  return message.SerializeAsString();
}

std::string scalar_message(const ScalarEvent& event) {
  pb::Event message;
  message.set_wall_time(event.wall_seconds);
  message.set_step(event.step);
  pb::Summary::Value& value = *message.mutable_summary()->add_value();
  value.set_tag(event.tag);
  value.set_simple_value(event.value);
  return message.SerializeAsString();
}
#else
std::string version_message(double) {
  fail(ErrorKind::unavailable,
       "this build cannot write TensorBoard files: build with the packages libprotobuf-dev and protobuf-compiler");
}
std::string scalar_message(const ScalarEvent&) { return {}; }  // no file to write to
#endif

}  // namespace

// Checks the existing part of the path: the rest would be created in it.
void EventFile::check(const std::string& folder) {
  std::ignore = version_message(0);
  std::filesystem::path there = std::filesystem::absolute(folder).lexically_normal();
  std::error_code error;
  while (!std::filesystem::exists(std::filesystem::symlink_status(there, error)) && there.has_relative_path()) {
    there = there.parent_path();
  }
  check_can_make(there / "events.out.tfevents", fmt::format("--tensorboard {}: ", folder), "give a writable folder");
}

EventFile::EventFile(const std::string& folder) {
  const double now = seconds_since_1970();
  const std::string version = version_message(now);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  // TensorBoard shows a folder's files as one run, sorted by name.
  for (int number = 0; !file_.is_open(); ++number) {
    path_ = fmt::format("{}/events.out.tfevents.{:010}.{}.{}.{}", folder, static_cast<std::int64_t>(now),
                        comm::host_name(), getpid(), number);
    file_.reset(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
    if (!file_.is_open() && errno != EEXIST) {
      bad_input("cannot write '{}': {}; give a writable folder for TensorBoard", path_, std::strerror(errno));
    }
  }
  append(version);
  try {
    flush();
  } catch (const Error&) {
    std::filesystem::remove(path_, error);  // an empty one would be shown as a run
    throw;
  }
}

EventFile::~EventFile() {
  try {
    flush();
  } catch (const Error&) {
    // Lost curves must not fail a run that has its results.
  }
}

void EventFile::add(const ScalarEvent& event) { append(scalar_message(event)); }

void EventFile::add(const std::string& tag, std::int64_t step, float value) {
  add({.tag = tag, .step = step, .value = value, .wall_seconds = seconds_since_1970()});
}

void EventFile::append(const std::string& message) {
  std::vector<std::byte> frame;
  data::frame_record(std::as_bytes(std::span(message)), frame);
  waiting_.insert(waiting_.end(), frame.begin(), frame.end());
}

void EventFile::flush() {
  append_whole(file_.get(), waiting_, path_);
  waiting_.clear();
}

}  // namespace trireme::train
