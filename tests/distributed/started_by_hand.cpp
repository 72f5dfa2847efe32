#include "tests/distributed/started_by_hand.hpp"

#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "trireme/base/unique_fd.hpp"

namespace trireme::testkit {
namespace {

Words free_addresses(int count) {
  std::vector<UniqueFd> sockets;  // all at once, so that the ports differ
  Words addresses;
  for (int i = 0; i < count; ++i) {
    sockets.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(sockets.back().get(), generic, length) != 0 || getsockname(sockets.back().get(), generic, &length) != 0) {
      throw std::runtime_error("no free port");
    }
    addresses.push_back(fmt::format("127.0.0.1:{}", ntohs(address.sin_port)));
  }
  return addresses;
}

}  // namespace

StartedByHand::StartedByHand(ServerJob job) : job_(std::move(job)) {
  workers_ = free_addresses(job_.workers + job_.servers);
  servers_.assign(workers_.begin() + job_.workers, workers_.end());
  workers_.resize(job_.workers);
}

Words StartedByHand::lists() const {
  return {"--worker-hosts", fmt::format("{}", fmt::join(workers_, ",")), "--ps-hosts",
          fmt::format("{}", fmt::join(servers_, ","))};
}

std::string StartedByHand::json() const { return nlohmann::json{{"worker", workers_}, {"ps", servers_}}.dump(); }

Words StartedByHand::secret(const std::string& value) { return {"TRIREME_JOB_SECRET=" + value}; }

std::unique_ptr<RunningCommand> StartedByHand::start(const std::string& job, int index, const Words& options) const {
  return start_as(lists() + Words{"--job-name", job, "--task-index", std::to_string(index)}, options, secret());
}

std::unique_ptr<RunningCommand> StartedByHand::start_as(const Words& place, const Words& options,
                                                        const Words& environment) const {
  return std::make_unique<RunningCommand>(Words{"bench"} + bench_words(job_) + place + options, environment);
}

}  // namespace trireme::testkit
