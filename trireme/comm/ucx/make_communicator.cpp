#include "trireme/comm/ucx/make_communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "trireme/comm/ucx/ucx_communicator.hpp"

namespace trireme::comm::ucx {

namespace {

bool is_one_node(const Communicator& control) {
  return std::all_of(control.members().begin(), control.members().end(),
                     [&](const Member& member) { return member.node == control.self().node; });
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(Communicator& control) {
  const auto job = std::make_shared<UcxJob>(control, is_one_node(control));
  auto worker = std::make_unique<UcxWorker>(job->context);
  UcxCommunicator::Group group{.rank = control.rank(), .control_ranks = {}, .members = {}, .addresses = {}};
  group.control_ranks.resize(control.size());
  std::iota(group.control_ranks.begin(), group.control_ranks.end(), 0);
  group.members.assign(control.members().begin(), control.members().end());
  group.addresses = exchange_texts(control, group.control_ranks, worker->address());
  auto made = std::make_unique<UcxCommunicator>(job, std::move(worker), std::move(group));
  made->set_timeout(control.timeout());
  return made;
}

std::string library_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace trireme::comm::ucx
