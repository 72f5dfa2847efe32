#include "trireme/comm/survivors.hpp"

#include "trireme/base/error.hpp"
#include "trireme/comm/backoff.hpp"

namespace trireme::comm {
namespace {

constexpr int kHereTag = Communicator::kTags - 1;
constexpr int kListTag = Communicator::kTags - 2;

// Whether the transfer has completed; false: the rank is lost. Not by wait(), which fails when any rank is lost.
bool completes(Communicator& communicator, Transfer transfer, int rank) {
  Backoff backoff;
  try {
    while (!communicator.done(transfer)) {
      // Asked once more: that takes a transfer with a lost rank back.
      if (communicator.presence(rank) == Presence::lost) return communicator.done(transfer);
      communicator.doze(backoff);
    }
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace

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
      fail(ErrorKind::failed, "lost {}, without which the others cannot go on",
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
