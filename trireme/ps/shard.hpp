// One chunk of variables as a server holds it: values, optimizer state, the workers' gradients, and the rules of who
// waits for whom. Knows nothing of messages. Owned by Server, whose thread calls everything but update(), which runs on
// a thread of the pool and has the values and the state for itself while it does.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/base/clock.hpp"
#include "trireme/ps/protocol.hpp"

namespace trireme::ps {

// What a server counts. Staleness of a gradient: updates that were made between the values it was computed from and its
// own. Lead: steps that a worker was ahead of the slowest one when it got values; a bound on staleness bounds it.
struct Counters {
  std::int64_t pushes = 0, pulls = 0, updates = 0;
  std::int64_t dropped = 0;  // gradients that came too late: backup workers
  std::int64_t stale_updates = 0, most_stale = 0;
  std::int64_t most_lead = 0;
};

// The workers as a server sees them: whether each is still there, and whether gradients are to be expected from it.
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
  // The server keeps the setup and the crowd.
  Shard(std::uint32_t index, ChunkSetup chunk, const Setup& setup, const Crowd& crowd);

  std::uint32_t index() const { return index_; }  // of the server's chunks
  std::int32_t label = 0;                         // of the spans of its updates
  const ChunkSetup& chunk() const { return chunk_; }
  std::uint64_t version() const { return version_; }
  float agreed() const { return agreed_; }
  std::span<float> values() const;
  // 0 the values, then the arrays of optimizer state.
  std::span<float> array(std::uint32_t index) const;
  bool has_array(std::uint32_t index) const { return index <= states_.size(); }
  // Keeps the values as they are now: an update that comes meanwhile goes to a copy.
  std::shared_ptr<void> hold() const { return values_; }

  // Where the next gradients of a worker go; nothing where its last ones are still waiting, which no worker that keeps
  // to the protocol sees.
  std::span<float> gradient(int worker);
  // They are in place.
  void add(int worker, const Header& header);
  void pull(int worker, std::uint32_t array) { pulls_.push_back({worker, array}); }
  // A worker that has rested begins where the slowest of the others is.
  void resume(int worker);

  // Whether an update can be made of what has come. Then it is begun: call update(), then end_update().
  bool begin_update();
  void update();
  void end_update(Counters& counters);

  // Those who may be answered now, taken off the list. Not while an update is under way.
  std::vector<Push> take_answers(Counters& counters);
  std::vector<Pull> take_pulls();

  // For the message of a wait that takes too long: since when somebody has been waiting, and for which workers.
  std::optional<SteadyClock::time_point> waiting_since() const;
  std::vector<int> missing() const;

 private:
  struct Waiting {
    Push push;
    SteadyClock::time_point since;
    bool applied = false;
  };
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
  std::vector<AlignedMemory> gradients_;  // [worker], made when first needed
  std::uint64_t version_ = 0;             // updates made
  float agreed_ = 0;                      // votes of the last update
  std::vector<std::uint64_t> clocks_;     // [worker]: its updates

  std::vector<Waiting> waiting_;  // pushes without an answer, as they came
  std::vector<Pull> pulls_;
  bool updating_ = false;
  bool copies_first_ = false;
  // Of the update under way, in order of the workers.
  std::vector<const float*> chosen_;
  std::vector<float> weights_;
  std::vector<int> chosen_workers_;
  float learning_rate_ = 0, votes_ = 0;
};

}  // namespace trireme::ps
