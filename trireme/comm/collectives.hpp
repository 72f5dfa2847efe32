// Collectives for the business around training: initial values, agreement on options, metrics. Every rank calls them
// with the same sizes and in the same order. Written over send and receive, so every transport has them; each wait is
// the communicator's, with its timeout. The gradients' all-reduce is in comm/all_reducer.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

// Returns when all ranks have called it. log2(size) rounds.
void barrier(Communicator& communicator);

// The root's data to all ranks: a binomial tree for small data; large data goes down a chain in pieces, so that every
// rank passes one piece on while the next arrives.
void broadcast(Communicator& communicator, std::span<std::byte> data, int root = 0);

// The same for a text, whose length only the root knows.
std::string broadcast_text(Communicator& communicator, std::string text, int root = 0);

// The data of all ranks, in the order of ranks, to all. `all` has size() times the bytes of `mine`.
void all_gather(Communicator& communicator, std::span<const std::byte> mine, std::span<std::byte> all);
// The same for texts, whose lengths may differ.
std::vector<std::string> all_gather_text(Communicator& communicator, std::string_view mine);
// The same for one number each, such as times and hashes.
template <typename Value>
std::vector<Value> all_gather_value(Communicator& communicator, const Value& mine) {
  std::vector<Value> all(communicator.size());
  const AbandonOnError abandon_on_error(communicator);
  all_gather(communicator, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

// Afterwards this rank's slice_of(values, size(), rank()) is reduced over all ranks; the rest of the values is
// undefined. Allocates a little; all_reduce() likewise.
void reduce_scatter(Communicator& communicator, std::span<float> values, Reduction reduction);
void all_reduce(Communicator& communicator, std::span<float> values, Reduction reduction);

// How ranks that can do without a lost one agree on who is left: presence() alone will not do, because they notice a
// loss at different moments. Called by all ranks that are there. Rank 0 waits until each of the others has come here or
// is lost, and tells those that came who they are: the result, with rank 0 in front. Error(failed) when rank 0 is lost.
// For a transport that survives the loss of a rank.
std::vector<int> agree_on_survivors(Communicator& communicator);

// The part of `values` that belongs to one of `parts` owners: neighbouring, as even as can be, the first ones larger.
template <typename Value>
std::span<Value> slice_of(std::span<Value> values, int parts, int part) {
  const std::size_t each = values.size() / static_cast<std::size_t>(parts);
  const std::size_t larger = values.size() % static_cast<std::size_t>(parts);
  const auto index = static_cast<std::size_t>(part);
  return values.subspan(index * each + std::min(index, larger), each + (index < larger ? 1 : 0));
}

}  // namespace trireme::comm
