#include "trireme/comm/ucx/ucx_communicator.hpp"

#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "trireme/comm/backoff.hpp"
#include "trireme/comm/collectives/tags.hpp"

namespace trireme::comm::ucx {
namespace {

// Tags: the sender's rank, a mark, and the tag, or for word of a fetch the sender's slot.
constexpr std::uint64_t kAnnounced = 1ull << 31;  // the message is an announcement
constexpr std::uint64_t kFetched = 1ull << 30;    // the word that announced data was fetched
std::uint64_t full_tag(int sender, std::uint64_t rest) { return static_cast<std::uint64_t>(sender) << 32 | rest; }

// A communicator that is idle looks at the world so often, whatever UCX's events say.
constexpr int kLongestSleepMilliseconds = 1;
// How much one look does at most, so that a stream of messages does not keep the caller in here.
constexpr int kMostProgress = 100;
constexpr std::chrono::seconds kLongestClose{1};

constexpr ucp_request_param_t with_request() {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;  // one way for all: a request that is asked about
  return param;
}
constexpr ucp_request_param_t kWithRequest = with_request();

bool is_shared_memory(const std::string& transport) {
  return transport == "posix" || transport == "sysv" || transport == "xpmem";
}

std::string in_words(const std::string& transport) {
  if (is_shared_memory(transport)) return transport + " shared memory";
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
      least_fetched_(std::max(static_cast<std::size_t>(job_->options.fetched_bytes), sizeof(Announcement))),
      worker_(std::move(worker)),
      control_ranks_(std::move(group.control_ranks)),
      peers_(group.members.size()) {
  set_members(std::move(group.members));
  for (int rank = 0; rank < size(); ++rank) connect(rank, group.addresses[static_cast<std::size_t>(rank)]);
}

// UCX 1.13 has no shared memory for endpoints that are to report the failure of their peer: it would take TCP. So these
// are only asked for between nodes; inside one, the control's word has to do.
void UcxCommunicator::connect(int rank, const std::string& address) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  peer.reports_failure = members()[static_cast<std::size_t>(rank)].node != self().node;
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  if (peer.reports_failure) {
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.arg = &peer;
    params.err_handler.cb = [](void* failed, ucp_ep_h, ucs_status_t status) {
      static_cast<Peer*>(failed)->failure = status;
    };
  }
  const ucs_status_t status = ucp_ep_create(worker_->handle(), &params, &peer.endpoint);
  if (status != UCS_OK) {
    fail(ErrorKind::failed, "{}: connecting to {}: UCX says: {}; UCX_TLS and UCX_NET_DEVICES choose its transports",
         name_of(this->rank()), name_of(rank), ucs_status_string(status));
  }
  peer.transports = transports_of(peer.endpoint);
  peer.shows_memory = std::any_of(peer.transports.begin(), peer.transports.end(), is_shared_memory);
}

UcxCommunicator::~UcxCommunicator() {
  for (State& state : states_) {
    for (void* request : {state.request, state.confirmation}) {
      if (request == nullptr) continue;
      ucp_request_cancel(worker_->handle(), request);
      ucp_request_free(request);
    }
  }
  for (Peer& peer : peers_) disconnect(peer);
}

// In good order what was sent is on its way first; others may still need it.
void UcxCommunicator::disconnect(Peer& peer) {
  if (peer.endpoint == nullptr) return;
  for (const auto& [id, key] : peer.keys) ucp_rkey_destroy(key);
  peer.keys.clear();
  const auto rank = static_cast<int>(&peer - peers_.data());
  const bool is_lost = peer.failure != UCS_OK || presence(rank) != Presence::here;
  if (is_lost && !peer.reports_failure) return;  // goes with the worker
  ucp_request_param_t param{};
  if (is_lost) {
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

std::shared_ptr<void> UcxCommunicator::allocate(std::int64_t bytes) {
  auto memory = job_->context->allocate(bytes);
  return memory != nullptr ? memory : Communicator::allocate(bytes);
}

void UcxCommunicator::progress() {
  for (int i = 0; i < kMostProgress && ucp_worker_progress(worker_->handle()) != 0; ++i) has_progressed_ = true;
  std::erase_if(fetching_, [&](int slot) {
    State& state = states_[static_cast<std::size_t>(slot)];
    advance(state);
    return state.status != UCS_OK || (state.stage != Stage::receive && state.stage != Stage::fetch);
  });
}

// What has progressed while one transfer was asked about may have completed another that was asked about before: then
// there is something to look at.
void UcxCommunicator::doze(Backoff& backoff) {
  if (std::exchange(has_progressed_, false) || backoff.spin()) return;
  if (ucp_worker_arm(worker_->handle()) != UCS_OK) return;  // something has happened, or fails when asked about
  pollfd event{.fd = worker_->event_descriptor(), .events = POLLIN, .revents = 0};
  poll(&event, 1, kLongestSleepMilliseconds);
}

void UcxCommunicator::abort(int code) {
  job_->control.abort(code);
  std::_Exit(code);
}

std::unique_ptr<Communicator> UcxCommunicator::make_group(const std::vector<int>& ranks, int) {
  auto worker = std::make_unique<UcxWorker>(*job_->context);
  Group group;
  group.rank = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
  for (const int rank : ranks) {
    group.control_ranks.push_back(control_ranks_[static_cast<std::size_t>(rank)]);
    group.members.push_back(members()[static_cast<std::size_t>(rank)]);
  }
  group.addresses = exchange_texts(*this, ranks, worker->address());
  return std::make_unique<UcxCommunicator>(job_, std::move(worker), std::move(group));
}

// ---- Transfers ----

UcxCommunicator::State& UcxCommunicator::begin(int slot, Stage stage, int peer) {
  while (static_cast<std::size_t>(slot) >= states_.size()) states_.emplace_back();
  State& state = states_[static_cast<std::size_t>(slot)];
  state.stage = stage;
  state.peer = peer;
  state.data = {};
  state.arrived_bytes = 0;
  state.status = UCS_OK;
  state.request = nullptr;
  state.confirmation = nullptr;
  return state;
}

// Errors wait until the transfer is asked about: a rank that is gone must not surprise who begins to send to it.
void UcxCommunicator::begin_request(State& state, Stage stage, ucs_status_ptr_t request) {
  state.stage = stage;
  state.status = UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK;
  state.request = UCS_PTR_IS_ERR(request) ? nullptr : request;
}

void UcxCommunicator::post_send(int slot, std::span<const std::byte> data, int to, int tag) {
  State& state = begin(slot, Stage::send, to);
  const Peer& peer = peers_[static_cast<std::size_t>(to)];
  const std::uint64_t full = full_tag(rank(), static_cast<std::uint64_t>(tag));
  if (peer.endpoint == nullptr) {
    state.status = UCS_ERR_NOT_CONNECTED;
    return;
  }
  if (peer.shows_memory && data.size() >= least_fetched_) {
    if (const auto region = job_->context->region_of(data)) {
      announce(slot, data, *region, full);
      return;
    }
  }
  begin_request(state, Stage::send, ucp_tag_send_nbx(peer.endpoint, data.data(), data.size(), full, &kWithRequest));
}

void UcxCommunicator::announce(int slot, std::span<const std::byte> data, const Region& region, std::uint64_t tag) {
  State& state = states_[static_cast<std::size_t>(slot)];
  state.announcement = {.address = reinterpret_cast<std::uint64_t>(data.data()),
                        .bytes = data.size(),
                        .slot = static_cast<std::uint32_t>(slot),
                        .region = region};
  ucs_status_ptr_t confirmation =
      ucp_tag_recv_nbx(worker_->handle(), nullptr, 0, full_tag(state.peer, kFetched | state.announcement.slot),
                       ~std::uint64_t{0}, &kWithRequest);
  if (UCS_PTR_IS_ERR(confirmation)) {
    state.status = UCS_PTR_STATUS(confirmation);
    return;
  }
  state.confirmation = confirmation;
  begin_request(state, Stage::send,
                ucp_tag_send_nbx(endpoint(state.peer), &state.announcement, sizeof(Announcement), tag | kAnnounced,
                                 &kWithRequest));
}

// Takes an announcement as well, for which there is room: what is announced is no smaller.
void UcxCommunicator::post_receive(int slot, std::span<std::byte> data, int from, int tag) {
  State& state = begin(slot, Stage::receive, from);
  state.data = data;
  begin_request(state, Stage::receive,
                ucp_tag_recv_nbx(worker_->handle(), data.data(), data.size(),
                                 full_tag(from, static_cast<std::uint64_t>(tag)), ~kAnnounced, &kWithRequest));
  if (data.size() >= sizeof(Announcement)) fetching_.push_back(slot);
}

bool UcxCommunicator::test(int slot) {
  progress();
  State& state = states_[static_cast<std::size_t>(slot)];
  advance(state);
  if (state.status != UCS_OK) fail_with_status(slot);
  if (state.stage != Stage::complete) {
    check_peer_of(slot);
    return false;
  }
  if (state.arrived_bytes != state.data.size()) {
    fail_transfer(slot, fmt::format("{} bytes came; the sizes of send and receive must be equal", state.arrived_bytes));
  }
  return true;
}

void UcxCommunicator::advance(State& state) {
  while (state.stage != Stage::complete && is_over(state) && state.status == UCS_OK) begin_next_stage(state);
}

bool UcxCommunicator::is_over(State& state) {
  if (state.request == nullptr) return true;
  const ucs_status_t status = state.stage == Stage::receive ? ucp_tag_recv_request_test(state.request, &state.received)
                                                            : ucp_request_check_status(state.request);
  if (status == UCS_INPROGRESS) return false;
  ucp_request_free(std::exchange(state.request, nullptr));
  state.status = status;
  return true;
}

void UcxCommunicator::begin_next_stage(State& state) {
  switch (state.stage) {
    case Stage::send:
      if (state.confirmation == nullptr) {
        state.stage = Stage::complete;
      } else {
        begin_request(state, Stage::await_fetch, std::exchange(state.confirmation, nullptr));
      }
      break;
    case Stage::receive:
      if ((state.received.sender_tag & kAnnounced) == 0) {
        state.arrived_bytes = state.received.length;
        state.stage = Stage::complete;
      } else {
        begin_fetch(state);
      }
      break;
    case Stage::fetch:
      begin_request(state, Stage::confirm,
                    ucp_tag_send_nbx(endpoint(state.peer), nullptr, 0,
                                     full_tag(rank(), kFetched | state.announcement.slot), &kWithRequest));
      break;
    case Stage::await_fetch:
    case Stage::confirm:
      state.stage = Stage::complete;
      break;
    case Stage::complete:
      break;
  }
}

void UcxCommunicator::begin_fetch(State& state) {
  std::memcpy(&state.announcement, state.data.data(), sizeof(Announcement));
  state.arrived_bytes = state.announcement.bytes;
  if (state.arrived_bytes != state.data.size()) {
    state.stage = Stage::complete;  // with an error that test() finds
    return;
  }
  ucp_rkey_h key = nullptr;
  state.status = find_key(peers_[static_cast<std::size_t>(state.peer)], state.announcement.region, key);
  if (state.status != UCS_OK) return;
  begin_request(state, Stage::fetch,
                ucp_get_nbx(endpoint(state.peer), state.data.data(), state.data.size(), state.announcement.address, key,
                            &kWithRequest));
}

// The memory stays mapped: it will be fetched from again.
ucs_status_t UcxCommunicator::find_key(Peer& peer, const Region& region, ucp_rkey_h& key) {
  if (peer.endpoint == nullptr) return UCS_ERR_NOT_CONNECTED;
  if (const auto known = peer.keys.find(region.id); known != peer.keys.end()) {
    key = known->second;
    return UCS_OK;
  }
  const ucs_status_t status = ucp_ep_rkey_unpack(peer.endpoint, region.key.data(), &key);
  if (status == UCS_OK) peer.keys.emplace(region.id, key);
  return status;
}

void UcxCommunicator::fail_with_status(int slot) {
  const State& state = states_[static_cast<std::size_t>(slot)];
  if (state.status == UCS_ERR_MESSAGE_TRUNCATED) {
    fail_transfer(
        slot, fmt::format("more than {} bytes came; the sizes of send and receive must be equal", state.data.size()));
  }
  check_peer_of(slot);  // says more than UCX does
  fail_transfer(slot, fmt::format("UCX says: {}", ucs_status_string(state.status)));
}

void UcxCommunicator::check_peer_of(int slot) {
  const int rank = states_[static_cast<std::size_t>(slot)].peer;
  const Peer& peer = peers_[static_cast<std::size_t>(rank)];
  const Presence where = presence(rank);
  if (where == Presence::lost) fail_transfer(slot, fmt::format("{} is gone without a word", name_of(rank)));
  if (where == Presence::left) fail_transfer(slot, fmt::format("{} has left the job", name_of(rank)));
  if (peer.failure == UCS_OK) return;
  fail_transfer(slot, fmt::format("the connection to {} is broken: UCX says: {}", name_of(rank),
                                  ucs_status_string(peer.failure)));
}

// The caller's memory is his own again after an error: UCX must let go of it. What cannot be cancelled is a send to a
// rank that will never take it.
void UcxCommunicator::fail_transfer(int slot, std::string_view reason) {
  State& state = states_[static_cast<std::size_t>(slot)];
  for (void** request : {&state.request, &state.confirmation}) {
    if (*request == nullptr) continue;
    ucp_request_cancel(worker_->handle(), *request);
    ucp_request_free(std::exchange(*request, nullptr));
  }
  if (state.status == UCS_OK) state.status = UCS_ERR_CANCELED;
  if (Peer& peer = peers_[static_cast<std::size_t>(state.peer)]; peer.reports_failure) disconnect(peer);
  fail(ErrorKind::failed, "{}: {}", describe(slot), reason);
}

}  // namespace trireme::comm::ucx
