// The members of a job that may lose some and go on: who takes part, as somebody decides who learns of every loss, such
// as a launcher (cluster/launched_teams.hpp). Asked by parallel/elastic_sync.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace trireme::comm {

struct Team {
  int epoch = 1;           // counts the decisions
  std::vector<int> ranks;  // in the communicator of all, ascending
};

// Thread-safe.
class TeamSource {
 public:
  virtual ~TeamSource() = default;

  virtual Team newest() const = 0;
  // The newest team once it is newer than this; nothing if none comes within this time.
  virtual std::optional<Team> wait_for_newer(int epoch, std::chrono::milliseconds longest) = 0;
  // Called with every newer team, by another thread. Returns when an earlier one is not running any more.
  virtual void set_on_news(std::function<void()> then) = 0;
  // Called before every step, from 0 on. Until all members have called it, no loss can be survived.
  virtual void begin_step(std::uint64_t step) = 0;
};

}  // namespace trireme::comm
