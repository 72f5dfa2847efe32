// A TensorBoard file of scalars over steps, readable while it grows. Made by trainers (`--tensorboard DIR`), one per
// run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trireme/base/unique_fd.hpp"

namespace trireme::train {

struct ScalarEvent {
  std::string tag;  // "loss"; the part before a '/' groups curves: "accuracy/top-1"
  std::int64_t step = 0;
  float value = 0;
  double wall_seconds = 0;  // since 1970
};

class EventFile {
 public:
  // Creates "events.out.tfevents.<seconds>.<host>.<process>.<number>" in the folder, and the folder if missing.
  // Error(bad_input) if not writable, Error(unavailable) in a build without protobuf.
  explicit EventFile(const std::string& folder);
  static void check(const std::string& folder);  // throws the same errors without creating anything
  ~EventFile();                                  // flushes; data that cannot be written is lost
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void add(const ScalarEvent& event);
  void add(const std::string& tag, std::int64_t step, float value);  // at the current time
  void flush();  // Error(failed), as on a full disk: the data is kept for the next try

  const std::string& path() const { return path_; }

 private:
  void append(const std::string& message);

  std::string path_;
  UniqueFd file_;
  std::vector<std::byte> waiting_;  // whole records
};

}  // namespace trireme::train
