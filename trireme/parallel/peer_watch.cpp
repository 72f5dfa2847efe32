#include "trireme/parallel/peer_watch.hpp"

#include <algorithm>

#include "trireme/base/error.hpp"

namespace trireme::parallel {
namespace {

using namespace std::chrono_literals;

constexpr int kStatusTag = 0;

SteadyClock::duration period_for(std::chrono::duration<double> timeout) {
  return std::chrono::duration_cast<SteadyClock::duration>(std::min<std::chrono::duration<double>>(1s, timeout / 8));
}

}  // namespace

PeerWatch::PeerWatch(comm::Communicator& workers, std::chrono::duration<double> timeout,
                     std::function<void()> start_thread)
    : timeout_(timeout),
      period_(period_for(timeout)),
      start_thread_(std::move(start_thread)),
      peers_(static_cast<std::size_t>(workers.size())),
      communicator_(workers.split(0, workers.rank())) {
  thread_ = std::thread([this] { work(); });
}

PeerWatch::~PeerWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    gives_up_ = std::uncaught_exceptions() > exceptions_;  // the others may never come here
  }
  wake_.notify_all();
  thread_.join();
}

// At the end, each worker hears from all others that nothing more comes, so that no receive is left.
void PeerWatch::work() noexcept {
  try {
    if (start_thread_) start_thread_();
    std::unique_lock lock(mutex_);
    while (!gives_up_) {
      exchange_all();
      if (ends_) {
        if (std::ranges::all_of(peers_, &Peer::is_over)) return;
        communicator_->check_peers();
        const auto is_silent = [this](const Peer& peer) {
          return !peer.is_over && last_look_ - peer.heard_at > timeout_;
        };
        if (std::ranges::any_of(peers_, is_silent)) return communicator_->abandon();
      }
      wake_.wait_for(lock, ends_ ? 1ms : period_, [this, ended = ends_] { return ends_ != ended; });
    }
  } catch (...) {
    // A worker is lost: waits notice that themselves.
  }
}

void PeerWatch::exchange_all() {
  excuse_pause();
  if (const std::uint32_t now = progress_.load(std::memory_order_relaxed); now != own_progress_) {
    own_progress_ = now;
    last_progress_ = last_look_;
  }
  for (int rank = 0; rank < communicator_->size(); ++rank) {
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    if (rank == communicator_->rank() || communicator_->presence(rank) != comm::Presence::here) peer.is_over = true;
    if (!peer.is_over) exchange(rank, peer);
  }
}

void PeerWatch::exchange(int rank, Peer& peer) {
  const auto receive = [&] {
    return communicator_->start_receive(std::as_writable_bytes(std::span(&peer.heard, 1)), rank, kStatusTag);
  };
  if (peer.receive.slot < 0) peer.receive = receive();
  while (!peer.heard.ends && communicator_->done(peer.receive)) {
    const bool has_progress = peer.heard.progress != peer.progress;
    peer.heard_at = last_look_;
    peer.progress = peer.heard.progress;
    if (has_progress) last_progress_ = last_look_;
    if (has_progress || peer.heard.waits) peer.news = last_look_;
    if (!peer.heard.ends) peer.receive = receive();
  }
  if (!communicator_->done(peer.send)) return;
  peer.is_over = peer.heard.ends && peer.told.ends;
  if (peer.told.ends) return;
  peer.told = {.progress = own_progress_, .waits = waits_.load(std::memory_order_relaxed), .ends = ends_};
  peer.send = communicator_->start_send(std::as_bytes(std::span(&peer.told, 1)), rank, kStatusTag);
}

// What happened while this process was stopped is nobody's fault.
void PeerWatch::excuse_pause() {
  const auto now = SteadyClock::now();
  const auto pause = now - std::exchange(last_look_, now);
  if (pause < 3 * period_) return;
  last_progress_ += pause;
  for (Peer& peer : peers_) {
    peer.news += pause;
    peer.heard_at += pause;
  }
}

std::string PeerWatch::culprit() {
  const std::lock_guard lock(mutex_);
  const auto now = SteadyClock::now();
  if (now - last_look_ >= 3 * period_) return "";  // this process was stopped
  int oldest = communicator_->rank() == 0 ? 1 : 0;
  for (int rank = 0; rank < communicator_->size(); ++rank) {
    if (rank != communicator_->rank() && peers_[rank].news < peers_[oldest].news) oldest = rank;
  }
  if (now - peers_[oldest].news > timeout_) return communicator_->name_of(oldest);
  // All wait: a message must be lost.
  return now - last_progress_ > 2 * timeout_ ? "the other side" : "";
}

}  // namespace trireme::parallel
