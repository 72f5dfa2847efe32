// One chunk of variables on a server: values, optimizer state, the workers' gradients, and who waits for whom. Owned by
// Server, whose thread calls everything except update(); that has values and state to itself on a pool thread.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/base/clock.hpp"
#include "trireme/ps/protocol.hpp"

namespace trireme::ps {

// Staleness of a gradient: updates between the values it was computed from and its own. Lead: steps a worker was ahead
// of the slowest when it got values; a staleness bound limits it.
struct Counters {
  std::int64_t pushes = 0, pulls = 0, updates = 0;
  std::int64_t dropped = 0;  // gradients that came too late: backup workers
  std::int64_t stale_updates = 0, most_stale = 0;
  std::int64_t most_lead = 0;
};

// Which workers are present, and from which to expect gradients.
struct Crowd {
  std::vector<bool> here, active;

  int count_here() const { return static_cast<int>(std::count(here.begin(), here.end(), true)); }
};

struct Push {
  int worker = 0;
  Header header;
};

struct Pull {
  int worker = 0;
  std::uint32_t array = 0;
};

class Shard {
 public:
  Shard(std::uint32_t index, ChunkSetup chunk, const Setup& setup, const Crowd& crowd);

  std::uint32_t index() const { return index_; }  // of the server's chunks
  std::int32_t label = 0;                         // of its updates' spans
  const ChunkSetup& chunk() const { return chunk_; }
  std::uint64_t version() const { return version_; }
  float agreed() const { return agreed_; }
  std::span<float> values() const { return floats_in(*values_); }
  std::span<float> array(std::uint32_t index) const {  // 0: values, then optimizer state
    return index == 0 ? values() : floats_in(states_[index - 1]);
  }
  bool has_array(std::uint32_t index) const { return index <= states_.size(); }
  // Keeps the current values unchanged: updates meanwhile write to a copy.
  std::shared_ptr<void> hold() const { return values_; }

  // Where a worker's next gradients go; empty if its last ones still wait (a protocol violation).
  std::span<float> gradient(int worker);
  void add(int worker, const Header& header);  // the gradients are in place
  void pull(int worker, std::uint32_t array) { pulls_.push_back({worker, array}); }
  void resume(int worker);  // a rested worker resumes at the position of the slowest other one

  // Whether an update is possible with what has arrived. If so it is started: call update(), then end_update().
  bool begin_update();
  void update();
  void end_update(Counters& counters);

  // Removes and returns those that may be answered now. Not during an update.
  std::vector<Push> take_answers(Counters& counters);
  std::vector<Pull> take_pulls();

  // For timeout messages: since when something waits, and for which workers.
  std::optional<SteadyClock::time_point> waiting_since() const;
  std::vector<int> missing() const;

 private:
  struct Waiting {
    Push push;
    SteadyClock::time_point since;
    bool applied = false;
  };
  std::span<float> floats_in(const AlignedMemory& memory) const;
  bool waits(int worker) const;
  int required() const;  // gradients that a synchronous update waits for
  bool is_current(const Push& push) const { return push.header.version == version_; }
  std::uint64_t slowest_clock() const;
  void choose_synchronous();
  void choose_asynchronous();
  bool may_answer(const Waiting& waiting) const;
  std::int64_t lead(int worker) const;

  std::uint32_t index_;
  ChunkSetup chunk_;
  const Setup& setup_;
  const Crowd& crowd_;

  std::shared_ptr<AlignedMemory> values_, spare_;
  std::vector<AlignedMemory> states_;
  std::vector<AlignedMemory> gradients_;  // [worker], allocated when first needed
  std::uint64_t version_ = 0;             // updates made
  float agreed_ = 0;                      // votes of the last update
  std::vector<std::uint64_t> clocks_;     // [worker]: its updates

  std::vector<Waiting> waiting_;  // unanswered pushes in order of arrival
  std::vector<Pull> pulls_;
  bool updating_ = false;
  bool copies_first_ = false;
  // The update under way, in worker order.
  std::vector<const float*> chosen_;
  std::vector<float> weights_;
  std::vector<int> chosen_workers_;
  float learning_rate_ = 0, votes_ = 0;
};

}  // namespace trireme::ps
