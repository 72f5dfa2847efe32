// Transfers between the stages of a pipeline. A program's messages have the same memory, peers and order in every run.
// Implemented by parallel/pipeline_link.hpp, and for the memory of a device by parallel/staged_link.hpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace trireme {

struct StageMessage {
  std::string name;  // for messages to users: "conv1 of micro-batch 3"
  bool sends = false;
  int peer = 0;  // rank
  int tag = 0;
  std::span<std::byte> memory;
};

// Called by the thread that runs the program. On a device, begin() stands for the work enqueued before it in the
// current stream: a message leaves, or may be overwritten, after that. What is enqueued after done() or wait() follows
// the message's end.
class StageLink {
 public:
  virtual ~StageLink() = default;

  virtual void open(std::vector<StageMessage> messages) = 0;
  virtual void begin(int message) = 0;
  virtual bool done(int message) = 0;  // since it was begun last; throws errors of earlier messages
  virtual void wait(int message) = 0;
};

}  // namespace trireme
