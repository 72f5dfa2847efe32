// The members of an elastic job as its launcher names them: a thread reads what the runner passes on. Made by
// train::Job.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "trireme/base/unique_fd.hpp"
#include "trireme/cluster/channel.hpp"
#include "trireme/comm/team.hpp"

namespace trireme::cluster {

class LaunchedTeams : public comm::TeamSource {
 public:
  // For a job of this many workers. Error(bad_input) if `trireme launch` has not started this process.
  explicit LaunchedTeams(int workers);
  ~LaunchedTeams() override;

  comm::Team newest() const override;
  std::optional<comm::Team> wait_for_newer(int epoch, std::chrono::milliseconds longest) override;
  void set_on_news(std::function<void()> then) override;
  void begin_step(std::uint64_t step) override;

 private:
  void listen();
  void take(const nlohmann::json& message);

  Channel link_;
  UniqueFd stopping_;  // an eventfd
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  comm::Team team_;
  std::mutex calling_;  // held during calls
  std::function<void()> then_;
  std::thread thread_;
};

}  // namespace trireme::cluster
