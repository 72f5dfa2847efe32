// What workers and parameter servers say to each other, over any Communicator: workers are its first ranks, servers the
// others. Variables travel in chunks, ranges of the arenas of at most a few megabytes, each of which lives on one
// server. Every message is a Header, and for some kinds the chunk's elements follow it, with a tag of their own; both
// arrive in order, so the n-th elements belong to the n-th header that announces some.
//
//   worker to server   push         elements: gradients. Answered by value, or by acknowledge where the worker asks so
//                      pull         answered by value: of the variables, or of an array of optimizer state
//                      rest         no gradients come from it until its next push or pull: nobody waits for them
//                      end          training is over: all workers are told, with whatever is sent to them next
//                      ask          answered by text: the server's statistics
//                      leave        the last word
//   server to worker   value        elements: values, after the update that the push was part of
//                      acknowledge  the update is done
//                      text         so many bytes follow
//                      failed       likewise: why the server is about to end
//
// Before that, once: every worker sends each server its Setup as text; worker 0 sends the initial elements of each
// chunk, in order, each followed by its arrays of optimizer state where training goes on from some step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/graph/ops/update.hpp"

namespace trireme::ps {

enum class Mode : std::uint8_t {
  synchronous,   // an update is of the mean of all workers' gradients
  asynchronous,  // every gradient is an update of its own, as it comes; a bound on staleness may hold workers back
};
std::string_view to_string(Mode mode);

inline constexpr int kHeaderTag = 0;
inline constexpr int kElementsTag = 1;
inline constexpr int kTextTag = 2;

enum class Kind : std::uint32_t { push = 1, pull, rest, end, ask, leave, value, acknowledge, text, failed };

struct Header {
  Kind kind = Kind::push;
  std::uint32_t chunk = 0;        // on this server; text, failed: its length
  std::uint64_t version = 0;      // push: of the values that the gradients were computed from; value: of these
  float learning_rate = 0;        // push
  float weight = 1;               // push: 1 is an even share in the mean
  float vote = 0;                 // push: this worker's; value: the sum over the workers of the update
  std::uint32_t wants_value = 1;  // push: 0 where acknowledge will do
  std::uint32_t array = 0;        // pull, value: 0 the values, then the arrays of the rule's state
  std::uint32_t ended = 0;        // value, acknowledge: 1 after any worker's end
  std::uint32_t traced = 0;       // push: 1 while this worker leaves spans; the server does then too
};

struct ChunkSetup {
  std::string name;  // of the update it belongs to
  std::int64_t elements = 0;
  std::int64_t priority = 0;  // of its values: lower is needed first
  op::OptimizerRule rule;
};

// Who waits for whom.
struct UpdateRules {
  Mode mode = Mode::synchronous;
  int staleness = -1;      // asynchronous: how many steps a worker may be ahead of the slowest; -1: no bound
  int backup_workers = 0;  // synchronous: an update does not wait for so many of the workers
  double timeout_seconds = 60;
};

// What a server has to know; the same from all workers.
struct Setup : UpdateRules {
  int workers = 1;
  std::uint64_t first_step = 0;
  std::vector<ChunkSetup> chunks = {};
};
std::string to_text(const Setup& setup);
Setup setup_from_text(const std::string& text);  // Error(failed) for what is no setup

void send_text(comm::Communicator& communicator, const std::string& text, int to);
std::string receive_text(comm::Communicator& communicator, int from);

}  // namespace trireme::ps
