#include "trireme/comm/ucx/ucx_communicator.hpp"

#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <utility>

#include "trireme/comm/backoff.hpp"

namespace trireme::comm::ucx {
namespace {

// Sender's rank and tag. Groups have their own workers, so nothing else is needed.
std::uint64_t full_tag(int sender, int tag) {
  return static_cast<std::uint64_t>(sender) << 32 | static_cast<std::uint64_t>(tag);
}

// Limit per poll, so that a stream of messages does not trap the caller.
constexpr int kMostProgress = 100;
constexpr std::chrono::seconds kLongestClose{1};
constexpr std::chrono::seconds kLongestCancel{1};

constexpr ucp_request_param_t with_request() {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;  // uniform: always a request to test
  return param;
}
constexpr ucp_request_param_t kWithRequest = with_request();

std::string in_words(const std::string& transport) {
  if (transport == "posix" || transport == "sysv" || transport == "xpmem") return transport + " shared memory";
  if (transport == "cma" || transport == "knem") return transport + " copies";
  if (transport.starts_with("rc") || transport.starts_with("dc") || transport.starts_with("ud")) {
    return transport + " RDMA";
  }
  return transport;
}

bool is_one_node(const Communicator& control) {
  return std::all_of(control.members().begin(), control.members().end(),
                     [&](const Member& member) { return member.node == control.self().node; });
}

// Exchanges texts between these ranks, including this one; results in their order. Collective over them.
std::vector<std::string> exchange_texts(Communicator& over, std::span<const int> ranks, const std::string& mine) {
  const std::uint64_t own_bytes = mine.size();
  std::vector<std::uint64_t> bytes(ranks.size());
  std::vector<std::string> texts(ranks.size());
  std::vector<Transfer> transfers;
  const AbandonOnError abandon_on_error(over);
  // Does not use wait(), which fails when any rank is lost: the rest may be making a group without it.
  const auto finish = [&] {
    Backoff backoff;
    for (const Transfer transfer : transfers) {
      while (!over.done(transfer)) {
        over.doze(backoff);
        over.check_wait("exchange of addresses", -1, 0, backoff.waited());
      }
    }
    transfers.clear();
  };
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    transfers.push_back(over.start_receive(std::as_writable_bytes(std::span(&bytes[i], 1)), ranks[i], kAddressTag));
    transfers.push_back(over.start_send(std::as_bytes(std::span(&own_bytes, 1)), ranks[i], kAddressTag));
  }
  finish();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    texts[i].resize(bytes[i]);
    transfers.push_back(over.start_receive(std::as_writable_bytes(std::span(texts[i])), ranks[i], kAddressTag));
    transfers.push_back(over.start_send(std::as_bytes(std::span(mine)), ranks[i], kAddressTag));
  }
  finish();
  return texts;
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

UcxCommunicator::UcxCommunicator(std::shared_ptr<UcxJob> job, std::unique_ptr<UcxWorker> worker, Group group)
    : Communicator(group.rank, static_cast<int>(group.members.size())),
      job_(std::move(job)),
      worker_(std::move(worker)),
      control_ranks_(std::move(group.control_ranks)),
      peers_(group.members.size()) {
  set_members(std::move(group.members));
  for (int rank = 0; rank < size(); ++rank) connect(rank, group.addresses[rank]);
  const std::lock_guard lock(job_->mutex);
  job_->members.push_back(this);
}

// UCX 1.13 has no shared memory for endpoints that report peer failure: it would use TCP. So failure reports are
// requested only between nodes; within one, the control reports losses. The error handler is always set: without it,
// UCX ends the process when copying from a killed one.
void UcxCommunicator::connect(int rank, const std::string& address) {
  Peer& peer = peers_[rank];
  peer.reports_failure = members()[rank].node != self().node;
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_handler.arg = &peer;
  params.err_handler.cb = [](void* failed, ucp_ep_h, ucs_status_t status) {
    static_cast<Peer*>(failed)->failure = status;
  };
  if (peer.reports_failure) {
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  }
  const ucs_status_t status = ucp_ep_create(worker_->handle(), &params, &peer.endpoint);
  if (status != UCS_OK) {
    fail(ErrorKind::failed, "{}: connecting to {}: UCX says: {}; UCX_TLS and UCX_NET_DEVICES choose its transports",
         name_of(this->rank()), name_of(rank), ucs_status_string(status));
  }
  peer.transports = transports_of(peer.endpoint);
}

UcxCommunicator::~UcxCommunicator() {
  {
    const std::lock_guard lock(job_->mutex);
    std::erase(job_->members, this);
  }
  if (!why_useless_.empty()) return;  // the rest is freed with the worker
  cancel(states_);
  std::vector<int> ranks(peers_.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  disconnect(ranks, false);
}

// Others are told first, so that they do not fetch from memory about to be reused.
void UcxCommunicator::abandon() {
  interrupt();
  job_->control.abandon();
  const std::lock_guard list_lock(job_->mutex);
  for (UcxCommunicator* const group : job_->members) {
    const std::lock_guard lock(group->mutex_);
    group->give_up();
  }
}

// Software transports stop when the worker is no longer driven; hardware connections are closed by force.
void UcxCommunicator::give_up() {
  if (!why_useless_.empty()) return;
  cancel(states_);
  std::vector<int> ranks(peers_.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  disconnect(ranks, true);
  why_useless_ = "given up because this task ends early";
}

// When closing in good order, what was sent is flushed first; others may still need it.
void UcxCommunicator::disconnect(std::span<const int> ranks, bool by_force) {
  std::vector<void*> closing;
  for (const int rank : ranks) {
    if (void* const request = start_close(rank, by_force || is_lost(rank))) closing.push_back(request);
  }
  const auto is_open = [](void* request) { return ucp_request_check_status(request) == UCS_INPROGRESS; };
  Backoff backoff;
  while (std::any_of(closing.begin(), closing.end(), is_open) && backoff.waited() < kLongestClose) {
    move_along();
    backoff.pause();
  }
  for (void* const request : closing) ucp_request_free(request);
}

// Null: it is closed, or goes with the worker.
void* UcxCommunicator::start_close(int rank, bool by_force) {
  Peer& peer = peers_[rank];
  if (peer.endpoint == nullptr || (by_force && !peer.reports_failure)) return nullptr;
  ucp_request_param_t param{};
  if (by_force) {
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  }
  void* const request = ucp_ep_close_nbx(std::exchange(peer.endpoint, nullptr), &param);
  return UCS_PTR_IS_ERR(request) ? nullptr : request;
}

std::string UcxCommunicator::transport() const {
  std::vector<std::string> words;
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == this->rank() && size() > 1) continue;
    for (const std::string& transport : peers_[rank].transports) {
      std::string word = in_words(transport);
      if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(std::move(word));
    }
  }
  return fmt::format("UCX {}: {}", library_version(), fmt::join(words, ", "));
}

Presence UcxCommunicator::presence(int rank) const { return job_->control.presence(control_ranks_[rank]); }

std::string UcxCommunicator::describe_absence(int rank) const {
  return job_->control.describe_absence(control_ranks_[rank]);
}

void UcxCommunicator::progress() {
  const std::lock_guard lock(mutex_);
  if (why_useless_.empty()) move_along();
}

void UcxCommunicator::move_along() {
  has_more_ = true;
  for (int i = 0; i < kMostProgress && has_more_; ++i) {
    has_more_ = ucp_worker_progress(worker_->handle()) != 0;
    has_progressed_ |= has_more_;
  }
}

// Progress made while testing one transfer may have completed an earlier one: then return at once. Otherwise pause, cut
// short by events. Events alone are not enough: none reports free space in a slow receiver's shared memory, and an
// unanswered TCP connection is always writable, so waking for that alone would spin and starve the peer.
void UcxCommunicator::doze(Backoff& backoff) {
  help_others();
  bool is_armed = true;
  {
    const std::lock_guard lock(mutex_);
    const bool was_woken = std::exchange(was_woken_, false);
    if (std::exchange(has_progressed_, false) || backoff.spin() || !why_useless_.empty()) return;
    if (was_woken) {
      is_armed = false;
    } else if (ucp_worker_arm(worker_->handle()) !=
               UCS_OK) {  // something has happened, if perhaps nothing to move along
      move_along();
      if (std::exchange(has_progressed_, false)) return;
      is_armed = false;
    }
  }
  if (!is_armed) {
    std::this_thread::sleep_for(backoff.next_sleep());
    return;
  }
  pollfd event{.fd = worker_->event_descriptor(), .events = POLLIN, .revents = 0};
  const timespec longest{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(backoff.next_sleep()).count()};
  was_woken_ = ppoll(&event, 1, &longest, nullptr) > 0;
}

// Sends that are done in another group may still be in UCX's queues, with nobody else driving that group.
void UcxCommunicator::help_others() {
  const std::unique_lock list_lock(job_->mutex, std::try_to_lock);
  if (!list_lock.owns_lock()) return;
  for (UcxCommunicator* const group : job_->members) {
    if (group == this) continue;
    const std::unique_lock lock(group->mutex_, std::try_to_lock);
    if (lock.owns_lock() && group->why_useless_.empty()) group->move_along();
  }
}

std::unique_ptr<Communicator> UcxCommunicator::make_group(const std::vector<int>& ranks, int) {
  auto worker = std::make_unique<UcxWorker>(job_->context);
  Group group;
  group.rank = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
  for (const int rank : ranks) {
    group.control_ranks.push_back(control_ranks_[rank]);
    group.members.push_back(members()[rank]);
  }
  group.addresses = exchange_texts(*this, ranks, worker->address());
  return std::make_unique<UcxCommunicator>(job_, std::move(worker), std::move(group));
}

void UcxCommunicator::post_send(int slot, std::span<const std::byte> data, int to, int tag) {
  const std::lock_guard lock(mutex_);
  const ucp_ep_h endpoint = why_useless_.empty() ? peers_[to].endpoint : nullptr;
  begin(slot, {.peer = to, .is_receive = false, .bytes = data.size()},
        endpoint == nullptr
            ? UCS_STATUS_PTR(UCS_ERR_NOT_CONNECTED)
            : ucp_tag_send_nbx(endpoint, data.data(), data.size(), full_tag(rank(), tag), &kWithRequest));
}

void UcxCommunicator::post_receive(int slot, std::span<std::byte> data, int from, int tag) {
  const std::lock_guard lock(mutex_);
  begin(slot, {.peer = from, .is_receive = true, .bytes = data.size()},
        why_useless_.empty() ? ucp_tag_recv_nbx(worker_->handle(), data.data(), data.size(), full_tag(from, tag),
                                                ~ucp_tag_t{0}, &kWithRequest)
                             : UCS_STATUS_PTR(UCS_ERR_CANCELED));
}

// Errors wait until the transfer is tested: starting a send to a lost rank must not throw.
void UcxCommunicator::begin(int slot, State state, ucs_status_ptr_t request) {
  state.look = looks_;
  if (UCS_PTR_IS_ERR(request)) {
    state.status = UCS_PTR_STATUS(request);
  } else {
    state.request = request;
  }
  state_at(states_, slot) = state;
}

// When many transfers are tested in turn, makes progress once per round: when one comes up again since the last time.
ucs_status_t UcxCommunicator::look_at(State& state, ucp_tag_recv_info_t& received) {
  const auto look = [&] {
    return state.is_receive ? ucp_tag_recv_request_test(state.request, &received)
                            : ucp_request_check_status(state.request);
  };
  const bool is_gone = is_lost(state.peer);  // checked before looking
  const ucs_status_t status = look();
  const bool is_its_turn = state.look == looks_;
  if (is_its_turn) ++looks_;
  state.look = looks_;
  if (status != UCS_INPROGRESS || (!is_its_turn && !is_gone)) return status;
  do move_along();
  while (is_gone && has_more_);  // what it sent before its end still counts
  return look();
}

bool UcxCommunicator::test(int slot) {
  const std::lock_guard lock(mutex_);
  State& state = states_[slot];
  if (!why_useless_.empty()) fail(ErrorKind::failed, "{}: {}", describe(slot), why_useless_);
  const bool is_gone = is_lost(state.peer);
  ucp_tag_recv_info_t received{.sender_tag = 0, .length = state.bytes};
  if (state.request != nullptr) {
    const ucs_status_t status = look_at(state, received);
    if (status == UCS_INPROGRESS) {
      if (is_gone) fail_transfer(slot, why_lost(state.peer));
      return false;
    }
    ucp_request_free(std::exchange(state.request, nullptr));
    state.status = status;
  }
  if (state.status == UCS_ERR_MESSAGE_TRUNCATED || received.length != state.bytes) {
    const char* const more_than = state.status == UCS_OK ? "" : "more than ";
    const std::size_t came = state.status == UCS_OK ? received.length : state.bytes;
    fail_transfer(slot,
                  fmt::format("received {}{} bytes; the sizes of send and receive must be equal", more_than, came));
  }
  if (state.status == UCS_OK) return true;
  fail_transfer(
      slot, is_lost(state.peer) ? why_lost(state.peer) : fmt::format("UCX says: {}", ucs_status_string(state.status)));
}

bool UcxCommunicator::is_lost(int rank) const {
  return peers_[rank].failure != UCS_OK || presence(rank) != Presence::here;
}

std::string UcxCommunicator::why_lost(int rank) const {
  if (presence(rank) != Presence::here) return describe_absence(rank);
  return fmt::format("the connection to {} is broken: UCX says: {}", name_of(rank),
                     ucs_status_string(peers_[rank].failure));
}

// After an error UCX must release the caller's memory. A receive that has started continues until it completes or
// fails; a send to a rank that will never receive it cannot be canceled.
void UcxCommunicator::cancel(std::span<State> states) {
  for (State& state : states) {
    if (state.request != nullptr) ucp_request_cancel(worker_->handle(), state.request);
  }
  const auto is_begun = [](const State& state) {
    return state.request != nullptr && state.is_receive && ucp_request_check_status(state.request) == UCS_INPROGRESS;
  };
  Backoff backoff;
  while (std::any_of(states.begin(), states.end(), is_begun)) {
    if (backoff.waited() > kLongestCancel) {
      why_useless_ = "a receive could not be cancelled";
      break;
    }
    move_along();
    backoff.pause();
  }
  for (State& state : states) {
    if (state.request != nullptr) ucp_request_free(std::exchange(state.request, nullptr));
  }
}

void UcxCommunicator::fail_transfer(int slot, std::string_view reason) {
  State& state = states_[slot];
  cancel({&state, 1});
  state.status = UCS_ERR_CANCELED;
  if (is_lost(state.peer)) disconnect({&state.peer, 1}, true);
  fail(ErrorKind::failed, "{}: {}", describe(slot), reason);
}

}  // namespace trireme::comm::ucx
