#include "trireme/comm/local/run_local.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <numeric>
#include <thread>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/comm/host.hpp"
#include "trireme/comm/local/local_communicator.hpp"

namespace trireme::comm {
namespace {

void run_rank(const std::shared_ptr<LocalWorld>& world, const LocalOptions& options, int rank,
              const std::function<void(Communicator&)>& body) {
  std::vector<int> places(options.size);
  std::iota(places.begin(), places.end(), 0);
  LocalCommunicator communicator(world, places, rank, 0);
  try {
    const int node = options.ranks_per_node > 0 ? rank / options.ranks_per_node : 0;
    const std::string host = options.ranks_per_node > 0 ? fmt::format("node{}", node) : host_name();
    communicator.introduce(host, fmt::format("{}", node));
    body(communicator);
  } catch (...) {
    world->fail(rank, std::current_exception());
  }
}

}  // namespace

void run_local(const LocalOptions& options, const std::function<void(Communicator&)>& body) {
  if (options.size < 1) bad_input("{} ranks: at least 1 is needed", options.size);
  const auto world = std::make_shared<LocalWorld>(options.size);
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < options.size; ++rank) {
      ranks.emplace_back([&, rank] { run_rank(world, options, rank, body); });
    }
  }
  if (!world->failed()) return;
  try {
    std::rethrow_exception(world->error());
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("rank {}: {}", world->failed_rank(), error.what()));
  }
}

std::unique_ptr<Communicator> make_single() {
  auto single = std::make_unique<LocalCommunicator>(std::make_shared<LocalWorld>(1), std::vector<int>{0}, 0, 0);
  single->introduce(host_name(), "0");
  return single;
}

}  // namespace trireme::comm
