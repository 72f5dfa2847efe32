#include "trireme/cluster/launched_teams.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <numeric>

#include "trireme/base/error.hpp"
#include "trireme/cluster/runner_link.hpp"

namespace trireme::cluster {
namespace {

UniqueFd copy_of_link() {
  const int link = runner_link();
  if (link < 0) bad_input("--elastic: start the workers with `trireme launch`, which tells them if one is lost");
  return UniqueFd(fcntl(link, F_DUPFD_CLOEXEC, 0));
}

}  // namespace

LaunchedTeams::LaunchedTeams(int workers) : link_(copy_of_link()), stopping_(eventfd(0, EFD_CLOEXEC)) {
  team_.ranks.resize(workers);
  std::iota(team_.ranks.begin(), team_.ranks.end(), 0);
  thread_ = std::thread([this] { listen(); });
}

LaunchedTeams::~LaunchedTeams() {
  eventfd_write(stopping_.get(), 1);
  thread_.join();
}

comm::Team LaunchedTeams::newest() const {
  const std::lock_guard lock(mutex_);
  return team_;
}

std::optional<comm::Team> LaunchedTeams::wait_for_newer(int epoch, std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, longest, [&] { return team_.epoch > epoch; })) return std::nullopt;
  return team_;
}

void LaunchedTeams::set_on_news(std::function<void()> then) {
  const std::lock_guard lock(calling_);
  then_ = std::move(then);
}

void LaunchedTeams::begin_step(std::uint64_t step) {
  if (step == 0) tell_runner({{"type", "trains"}});  // a runner that is gone takes this program along
}

void LaunchedTeams::listen() {
  for (bool open = true;;) {
    std::array<pollfd, 2> polled{pollfd{open ? link_.descriptor() : -1, POLLIN, 0}, pollfd{stopping_.get(), POLLIN, 0}};
    poll(polled.data(), polled.size(), -1);
    if (polled[1].revents != 0) return;
    std::vector<nlohmann::json> messages;
    open = open && link_.receive(messages);
    for (const nlohmann::json& message : messages) take(message);
  }
}

void LaunchedTeams::take(const nlohmann::json& message) {
  if (message.at("type") != "members") return;
  {
    const std::lock_guard lock(mutex_);
    team_ = {.epoch = message.at("epoch"), .ranks = message.at("workers")};
  }
  changed_.notify_all();
  const std::lock_guard lock(calling_);
  if (then_) then_();
}

}  // namespace trireme::cluster
