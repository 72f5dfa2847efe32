#include "trireme/comm/ucx/ucx_communicator.hpp"

#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "trireme/comm/backoff.hpp"
#include "trireme/comm/collectives/tags.hpp"

namespace trireme::comm::ucx {
namespace {

// The sender's rank and the tag. Groups have workers of their own, so that nothing need tell them apart.
std::uint64_t full_tag(int sender, int tag) {
  return static_cast<std::uint64_t>(sender) << 32 | static_cast<std::uint64_t>(tag);
}

// How much one look does at most, so that a stream of messages does not keep the caller in here.
constexpr int kMostProgress = 100;
constexpr std::chrono::seconds kLongestClose{1};

constexpr ucp_request_param_t with_request() {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;  // one way for all: a request that is asked about
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

}  // namespace

std::vector<std::string> exchange_texts(Communicator& over, std::span<const int> ranks, const std::string& mine) {
  const std::uint64_t own_bytes = mine.size();
  std::vector<std::uint64_t> bytes(ranks.size());
  std::vector<std::string> texts(ranks.size());
  std::vector<Transfer> transfers;
  const auto finish = [&] {
    for (const Transfer transfer : transfers) over.wait(transfer);
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

UcxCommunicator::UcxCommunicator(std::shared_ptr<const UcxJob> job, std::unique_ptr<UcxWorker> worker, Group group)
    : Communicator(group.rank, static_cast<int>(group.members.size())),
      job_(std::move(job)),
      worker_(std::move(worker)),
      control_ranks_(std::move(group.control_ranks)),
      peers_(group.members.size()) {
  set_members(std::move(group.members));
  for (int rank = 0; rank < size(); ++rank) connect(rank, group.addresses[static_cast<std::size_t>(rank)]);
}

// UCX 1.13 has no shared memory for endpoints that are to report the failure of their peer: it would take TCP. So these
// are only asked for between nodes; inside one, the control's word has to do. Somebody to report to is named in any
// case: without, UCX ends the process when it comes to copy from one that has been killed.
void UcxCommunicator::connect(int rank, const std::string& address) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  peer.reports_failure = members()[static_cast<std::size_t>(rank)].node != self().node;
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
  for (State& state : states_) cancel(state);
  for (int rank = 0; rank < size(); ++rank) disconnect(rank);
}

// In good order what was sent is on its way first; others may still need it.
void UcxCommunicator::disconnect(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  const bool by_force = is_lost(rank);
  if (peer.endpoint == nullptr || (by_force && !peer.reports_failure)) return;  // the latter goes with the worker
  ucp_request_param_t param{};
  if (by_force) {
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  }
  void* request = ucp_ep_close_nbx(peer.endpoint, &param);
  peer.endpoint = nullptr;
  if (request == nullptr || UCS_PTR_IS_ERR(request)) return;
  Backoff backoff;
  while (ucp_request_check_status(request) == UCS_INPROGRESS && backoff.waited() < kLongestClose) {
    progress();
    doze(backoff);
  }
  ucp_request_free(request);
}

std::string UcxCommunicator::transport() const {
  std::vector<std::string> words;
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == this->rank() && size() > 1) continue;
    for (const std::string& transport : peers_[static_cast<std::size_t>(rank)].transports) {
      std::string word = in_words(transport);
      if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(std::move(word));
    }
  }
  return fmt::format("UCX {}: {}", library_version(), fmt::join(words, ", "));
}

Presence UcxCommunicator::presence(int rank) const {
  return job_->control.presence(control_ranks_[static_cast<std::size_t>(rank)]);
}

void UcxCommunicator::progress() {
  has_more_ = true;
  for (int i = 0; i < kMostProgress && has_more_; ++i) {
    has_more_ = ucp_worker_progress(worker_->handle()) != 0;
    has_progressed_ |= has_more_;
  }
}

// What has progressed while one transfer was asked about may have completed another that was asked about before: then
// there is something to look at. Otherwise the usual pause, which an event cuts short. No event tells that there is
// room again in the shared memory of a slow receiver, so that waiting for events alone would be slow.
void UcxCommunicator::doze(Backoff& backoff) {
  if (std::exchange(has_progressed_, false) || backoff.spin()) return;
  if (ucp_worker_arm(worker_->handle()) != UCS_OK) return;  // something has happened, or fails when asked about
  pollfd event{.fd = worker_->event_descriptor(), .events = POLLIN, .revents = 0};
  const timespec longest{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(backoff.next_sleep()).count()};
  ppoll(&event, 1, &longest, nullptr);
}

void UcxCommunicator::abort(int code) {
  job_->control.abort(code);
  std::_Exit(code);
}

std::unique_ptr<Communicator> UcxCommunicator::make_group(const std::vector<int>& ranks, int) {
  auto worker = std::make_unique<UcxWorker>(job_->context);
  Group group;
  group.rank = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
  for (const int rank : ranks) {
    group.control_ranks.push_back(control_ranks_[static_cast<std::size_t>(rank)]);
    group.members.push_back(members()[static_cast<std::size_t>(rank)]);
  }
  group.addresses = exchange_texts(*this, ranks, worker->address());
  return std::make_unique<UcxCommunicator>(job_, std::move(worker), std::move(group));
}

void UcxCommunicator::post_send(int slot, std::span<const std::byte> data, int to, int tag) {
  const ucp_ep_h endpoint = peers_[static_cast<std::size_t>(to)].endpoint;
  begin(slot, {.peer = to, .is_receive = false, .bytes = data.size()},
        endpoint == nullptr
            ? UCS_STATUS_PTR(UCS_ERR_NOT_CONNECTED)
            : ucp_tag_send_nbx(endpoint, data.data(), data.size(), full_tag(rank(), tag), &kWithRequest));
}

void UcxCommunicator::post_receive(int slot, std::span<std::byte> data, int from, int tag) {
  begin(
      slot, {.peer = from, .is_receive = true, .bytes = data.size()},
      ucp_tag_recv_nbx(worker_->handle(), data.data(), data.size(), full_tag(from, tag), ~ucp_tag_t{0}, &kWithRequest));
}

// Errors wait until the transfer is asked about: a rank that is gone must not surprise who begins to send to it.
void UcxCommunicator::begin(int slot, State state, ucs_status_ptr_t request) {
  if (static_cast<std::size_t>(slot) >= states_.size()) states_.resize(static_cast<std::size_t>(slot) + 1);
  if (UCS_PTR_IS_ERR(request)) {
    state.status = UCS_PTR_STATUS(request);
  } else {
    state.request = request;
  }
  states_[static_cast<std::size_t>(slot)] = state;
}

bool UcxCommunicator::test(int slot) {
  State& state = states_[static_cast<std::size_t>(slot)];
  const bool is_gone = is_lost(state.peer);
  do progress();
  while (is_gone && has_more_);  // what it sent before it went still counts
  ucp_tag_recv_info_t received{.sender_tag = 0, .length = state.bytes};
  if (state.request != nullptr) {
    const ucs_status_t status = state.is_receive ? ucp_tag_recv_request_test(state.request, &received)
                                                 : ucp_request_check_status(state.request);
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
    fail_transfer(slot, fmt::format("{}{} bytes came; the sizes of send and receive must be equal", more_than, came));
  }
  if (state.status == UCS_OK) return true;
  fail_transfer(
      slot, is_lost(state.peer) ? why_lost(state.peer) : fmt::format("UCX says: {}", ucs_status_string(state.status)));
}

bool UcxCommunicator::is_lost(int rank) const {
  return peers_[static_cast<std::size_t>(rank)].failure != UCS_OK || presence(rank) != Presence::here;
}

std::string UcxCommunicator::why_lost(int rank) const {
  switch (presence(rank)) {
    case Presence::lost:
      return fmt::format("{} is gone without a word", name_of(rank));
    case Presence::left:
      return fmt::format("{} has left the job", name_of(rank));
    case Presence::here:
      break;
  }
  return fmt::format("the connection to {} is broken: UCX says: {}", name_of(rank),
                     ucs_status_string(peers_[static_cast<std::size_t>(rank)].failure));
}

// The caller's memory is his own again after an error: UCX must let go of it. What cannot be cancelled is a send to a
// rank that will never take it.
void UcxCommunicator::cancel(State& state) {
  if (state.request == nullptr) return;
  ucp_request_cancel(worker_->handle(), state.request);
  ucp_request_free(std::exchange(state.request, nullptr));
}

void UcxCommunicator::fail_transfer(int slot, std::string_view reason) {
  State& state = states_[static_cast<std::size_t>(slot)];
  cancel(state);
  state.status = UCS_ERR_CANCELED;
  if (is_lost(state.peer)) disconnect(state.peer);
  fail(ErrorKind::failed, "{}: {}", describe(slot), reason);
}

}  // namespace trireme::comm::ucx
