// Messages between workers (the first ranks of any Communicator) and parameter servers (the others). Variables travel
// in chunks: arena ranges of at most a few megabytes, each on one server. Every message is a Header; some are followed
// by the chunk's elements under their own tag. Both arrive in order, so the n-th elements belong to the n-th header
// that announces some.
//
//   worker to server   push         elements: gradients. Answered by value, or by acknowledge on request
//                      pull         answered by value: of the variables, or of an array of optimizer state
//                      rest         no gradients until its next push or pull: nobody waits for it
//                      end          training is over: all workers learn it with their next message
//                      ask          answered by text: the server's statistics
//                      leave        the last message
//   server to worker   value        elements: values, after the push's update
//                      acknowledge  the update is done
//                      text         text of this length follows
//                      failed       the same: why the server is about to end
//
// Before that, once: every worker sends each server its Setup as text; worker 0 sends the initial elements of each
// chunk in order, each followed by its optimizer state arrays if training resumes at a later step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/graph/ops/update.hpp"

namespace trireme::ps {

enum class Mode : std::uint8_t {
  synchronous,   // an update takes the mean of all workers' gradients
  asynchronous,  // every gradient is its own update on arrival; a staleness bound may hold workers back
};
std::string_view to_string(Mode mode);

inline constexpr int kHeaderTag = 0;
inline constexpr int kElementsTag = 1;
inline constexpr int kTextTag = 2;

enum class Kind : std::uint32_t { push = 1, pull, rest, end, ask, leave, value, acknowledge, text, failed };

struct Header {
  Kind kind = Kind::push;
  std::uint32_t chunk = 0;        // on this server; text, failed: its length
  std::uint64_t version = 0;      // push: of the values behind the gradients; value: of these
  float learning_rate = 0;        // push
  float weight = 1;               // push: 1 is an equal share in the mean
  float vote = 0;                 // push: this worker's; value: the sum over the update's workers
  std::uint32_t wants_value = 1;  // push: 0 if acknowledge is enough
  std::uint32_t array = 0;        // pull, value: 0 the values, then the rule's state arrays
  std::uint32_t ended = 0;        // value, acknowledge: 1 after any worker's end
  std::uint32_t traced = 0;       // push: 1 while this worker traces; then the server does too
};

struct ChunkSetup {
  std::string name;  // of its update
  std::int64_t elements = 0;
  std::int64_t priority = 0;  // of its values: lower is needed first
  op::OptimizerRule rule;
};

struct UpdateRules {  // who waits for whom
  Mode mode = Mode::synchronous;
  int staleness = -1;      // asynchronous: steps a worker may be ahead of the slowest; -1: no bound
  int backup_workers = 0;  // synchronous: an update does not wait for this many workers
  double timeout_seconds = 60;
};

struct Setup : UpdateRules {  // the same from all workers
  int workers = 1;
  std::uint64_t first_step = 0;
  std::vector<ChunkSetup> chunks = {};
};
std::string to_text(const Setup& setup);
Setup setup_from_text(const std::string& text);  // Error(failed) if malformed

void send_text(comm::Communicator& communicator, const std::string& text, int to);
std::string receive_text(comm::Communicator& communicator, int from);

}  // namespace trireme::ps
