#include "trireme/comm/collectives.hpp"

#include <algorithm>
#include <cstdint>

#include "trireme/base/error.hpp"
#include "trireme/comm/backoff.hpp"
#include "trireme/comm/collectives/algorithms.hpp"

namespace trireme::comm {
namespace {

constexpr std::size_t kBroadcastPiece = 512 << 10;
constexpr int kBroadcastAhead = 8;  // pieces in flight

// Binomial tree: in the round of distance d, ranks below d, counted from the root, send to those d further.
void broadcast_small(Communicator& communicator, std::span<std::byte> data, int root) {
  const int size = communicator.size();
  const int position = (communicator.rank() - root + size) % size;
  const auto rank_at = [&](int at) { return (at + root) % size; };
  int distance = 1;
  while (distance <= position) distance *= 2;  // the first round in which this rank has the data
  if (position > 0) communicator.receive(data, rank_at(position - distance / 2), kBroadcastTag);
  std::vector<Transfer> sends;
  for (; distance < size; distance *= 2) {
    if (position + distance >= size) break;
    sends.push_back(communicator.start_send(data, rank_at(position + distance), kBroadcastTag));
  }
  for (const Transfer& send : sends) communicator.wait(send);
}

void broadcast_large(Communicator& communicator, std::span<std::byte> data, int root) {
  const int size = communicator.size();
  const int position = (communicator.rank() - root + size) % size;
  const int previous = (communicator.rank() - 1 + size) % size;
  const int next = (communicator.rank() + 1) % size;
  const int pieces = static_cast<int>((data.size() + kBroadcastPiece - 1) / kBroadcastPiece);
  std::vector<Transfer> receives(pieces);
  std::vector<Transfer> sends(pieces);
  for (int i = -kBroadcastAhead; i < pieces; ++i) {
    const int posted = i + kBroadcastAhead;
    if (position > 0 && posted < pieces) {
      receives[posted] = communicator.start_receive(slice_of(data, pieces, posted), previous, kBroadcastTag);
    }
    if (i < 0) continue;
    communicator.wait(receives[i]);
    if (position + 1 == size) continue;
    if (i >= kBroadcastAhead) communicator.wait(sends[i - kBroadcastAhead]);
    sends[i] = communicator.start_send(slice_of(data, pieces, i), next, kBroadcastTag);
  }
  for (const Transfer& send : sends) communicator.wait(send);
}

constexpr int kHereTag = Communicator::kTags - 1;
constexpr int kListTag = Communicator::kTags - 2;

// False if the rank is lost. Does not use wait(), which fails when any rank is lost.
bool completes(Communicator& communicator, Transfer transfer, int rank) {
  Backoff backoff;
  try {
    while (!communicator.done(transfer)) {
      // Ask once more: this withdraws a transfer with a lost rank.
      if (communicator.presence(rank) == Presence::lost) return communicator.done(transfer);
      communicator.doze(backoff);
    }
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace

// In the round of distance d every rank notifies the one d further; log2(size) rounds reach all.
void barrier(Communicator& communicator) {
  const int size = communicator.size();
  for (int distance = 1; distance < size; distance *= 2) {
    const int to = (communicator.rank() + distance) % size;
    const int from = (communicator.rank() - distance + size) % size;
    const Transfer receive = communicator.start_receive({}, from, kBarrierTag);
    communicator.wait(communicator.start_send({}, to, kBarrierTag));
    communicator.wait(receive);
  }
}

void broadcast(Communicator& communicator, std::span<std::byte> data, int root) {
  if (root < 0 || root >= communicator.size()) {
    bad_input("broadcast from rank {}: ranks are 0 to {}", root, communicator.size() - 1);
  }
  if (communicator.size() == 1) return;
  if (data.size() <= kBroadcastPiece) {
    broadcast_small(communicator, data, root);
  } else {
    broadcast_large(communicator, data, root);
  }
}

// Around a ring: every rank forwards what it received last.
void all_gather(Communicator& communicator, std::span<const std::byte> mine, std::span<std::byte> all) {
  const int size = communicator.size();
  if (all.size() != mine.size() * static_cast<std::size_t>(size)) {
    bad_input("cannot all-gather {} bytes from each of {} ranks into {} bytes", mine.size(), size, all.size());
  }
  const auto part = [&](int rank) {
    return all.subspan(static_cast<std::size_t>((rank + size) % size) * mine.size(), mine.size());
  };
  const int rank = communicator.rank();
  std::copy(mine.begin(), mine.end(), part(rank).begin());
  for (int step = 0; step < size - 1; ++step) {
    const Transfer receive = communicator.start_receive(part(rank - step - 1), (rank - 1 + size) % size, kAllGatherTag);
    communicator.wait(communicator.start_send(part(rank - step), (rank + 1) % size, kAllGatherTag));
    communicator.wait(receive);
  }
}

std::string broadcast_text(Communicator& communicator, std::string text, int root) {
  std::uint64_t length = text.size();
  const AbandonOnError abandon_on_error(communicator);
  broadcast(communicator, std::as_writable_bytes(std::span(&length, 1)), root);
  text.resize(length);
  broadcast(communicator, std::as_writable_bytes(std::span(text)), root);
  return text;
}

std::vector<std::string> all_gather_text(Communicator& communicator, std::string_view mine) {
  const auto lengths = all_gather_value(communicator, static_cast<std::uint64_t>(mine.size()));
  const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::string padded(mine);
  padded.resize(longest);
  std::string all(longest * lengths.size(), '\0');
  const AbandonOnError abandon_on_error(communicator);
  all_gather(communicator, std::as_bytes(std::span(padded)), std::as_writable_bytes(std::span(all)));
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) texts.push_back(all.substr(rank * longest, lengths[rank]));
  return texts;
}

void all_reduce(Communicator& communicator, std::span<float> values, Reduction reduction) {
  make_tree(communicator, {})->reduce(values, reduction);
}

std::vector<int> agree_on_survivors(Communicator& communicator) {
  const auto size = static_cast<std::size_t>(communicator.size());
  std::vector<std::byte> is_here(size, std::byte{1});
  if (communicator.rank() == 0) {
    std::vector<Transfer> arrivals(size);
    for (std::size_t rank = 1; rank < size; ++rank) {
      arrivals[rank] = communicator.start_receive({&is_here[rank], 1}, static_cast<int>(rank), kHereTag);
    }
    for (std::size_t rank = 1; rank < size; ++rank) {
      if (!completes(communicator, arrivals[rank], static_cast<int>(rank))) is_here[rank] = std::byte{0};
    }
    for (std::size_t rank = 1; rank < size; ++rank) {
      if (is_here[rank] == std::byte{0}) continue;
      completes(communicator, communicator.start_send(is_here, static_cast<int>(rank), kListTag),
                static_cast<int>(rank));
    }
  } else {
    const std::byte here{1};
    const bool told = completes(communicator, communicator.start_send({&here, 1}, 0, kHereTag), 0) &&
                      completes(communicator, communicator.start_receive(is_here, 0, kListTag), 0);
    if (!told) {
      fail(ErrorKind::failed, "lost {}; the others cannot continue without it",
           communicator.members()[0].name.empty() ? "rank 0" : communicator.members()[0].name);
    }
  }
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < size; ++rank) {
    if (is_here[rank] != std::byte{0}) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

}  // namespace trireme::comm
