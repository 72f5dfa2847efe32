// A file of scalars over steps that TensorBoard shows: one curve per tag. It can be looked at while it grows. Made by
// trainers (`--tensorboard DIR`), one per run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trireme/base/unique_fd.hpp"

namespace trireme::train {

struct ScalarEvent {
  std::string tag;  // "loss"; what stands before a '/' groups curves: "accuracy/top-1"
  std::int64_t step = 0;
  float value = 0;
  double wall_seconds = 0;  // since 1970
};

class EventFile {
 public:
  // A new file "events.out.tfevents.<seconds>.<host>.<process>.<number>" in the folder, which is made where it is
  // missing. Error(bad_input) where it cannot be written, Error(unavailable) in a build without protobuf.
  explicit EventFile(const std::string& folder);
  static void check(const std::string& folder);  // the same errors, and makes nothing
  ~EventFile();                                  // flushes; what cannot be written then is lost
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void add(const ScalarEvent& event);
  // At the time of the call.
  void add(const std::string& tag, std::int64_t step, float value);
  // What was added is in the file afterwards. Error(failed) where it cannot be written, as on a full disk; all of it is
  // kept for the next try then.
  void flush();

  const std::string& path() const { return path_; }

 private:
  void append(const std::string& message);

  std::string path_;
  UniqueFd file_;
  std::vector<std::byte> waiting_;  // whole records
};

}  // namespace trireme::train
