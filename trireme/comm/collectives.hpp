// Collectives for everything around training: initial values, agreement on options, metrics. All ranks call them with
// the same sizes in the same order. Built on send and receive, so every transport has them; waits use the
// communicator's timeout. For gradients see comm/all_reducer.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

void barrier(Communicator& communicator);  // returns when all ranks have called it

// Sends the root's data to all ranks: small data down a binomial tree, large data down a chain in pipelined pieces.
void broadcast(Communicator& communicator, std::span<std::byte> data, int root = 0);

// The same for text whose length only the root knows.
std::string broadcast_text(Communicator& communicator, std::string text, int root = 0);

// Gathers the data of all ranks, in rank order, on all ranks. `all` has size() times the bytes of `mine`.
void all_gather(Communicator& communicator, std::span<const std::byte> mine, std::span<std::byte> all);
// The same for texts of different lengths.
std::vector<std::string> all_gather_text(Communicator& communicator, std::string_view mine);
// The same for one value per rank, such as a time or a hash.
template <typename Value>
std::vector<Value> all_gather_value(Communicator& communicator, const Value& mine) {
  std::vector<Value> all(communicator.size());
  const AbandonOnError abandon_on_error(communicator);
  all_gather(communicator, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

void all_reduce(Communicator& communicator, std::span<float> values, Reduction reduction);

// Lets ranks that can do without a lost one agree on who is left; they notice a loss at different times, so presence()
// is not enough. Called by all remaining ranks. Rank 0 waits until every other rank has called or is lost, and sends
// the result (rank 0 first). Error(failed) if rank 0 is lost. The transport must survive the loss of a rank.
std::vector<int> agree_on_survivors(Communicator& communicator);

// The contiguous part of `values` for owner `part` of `parts`; sizes differ by at most one, larger ones first.
template <typename Value>
std::span<Value> slice_of(std::span<Value> values, int parts, int part) {
  const std::size_t each = values.size() / static_cast<std::size_t>(parts);
  const std::size_t larger = values.size() % static_cast<std::size_t>(parts);
  const auto index = static_cast<std::size_t>(part);
  return values.subspan(index * each + std::min(index, larger), each + (index < larger ? 1 : 0));
}

}  // namespace trireme::comm
