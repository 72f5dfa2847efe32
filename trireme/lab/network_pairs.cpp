// Which pairs of ranks a network test measures.
#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include "trireme/base/error.hpp"
#include "trireme/lab/network_test.hpp"

namespace trireme::lab {
namespace {

std::vector<RankPair> pairs_of(const std::vector<int>& ranks) {
  std::vector<RankPair> pairs;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (std::size_t j = i + 1; j < ranks.size(); ++j) pairs.push_back({ranks[i], ranks[j]});
  }
  return pairs;
}

std::vector<RankPair> pairs_of_hosts(const comm::Communicator& communicator) {
  std::map<int, std::vector<int>> ranks_of_node;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    ranks_of_node[communicator.members()[rank].node].push_back(rank);
  }
  std::vector<int> first_ranks;
  std::vector<RankPair> pairs;
  for (const auto& [node, ranks] : ranks_of_node) {
    first_ranks.push_back(ranks[0]);
    if (ranks.size() > 1) pairs.push_back({ranks[0], ranks[1]});
  }
  const std::vector<RankPair> across = pairs_of(first_ranks);
  pairs.insert(pairs.end(), across.begin(), across.end());
  return pairs;
}

RankPair parse_pair(std::string_view text, int size) {
  RankPair pair;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, pair.first);
  const bool has_dash = first.ec == std::errc() && first.ptr != end && *first.ptr == '-';
  const auto second = has_dash ? std::from_chars(first.ptr + 1, end, pair.second) : first;
  if (!has_dash || second.ec != std::errc() || second.ptr != end || pair.first == pair.second || pair.first < 0 ||
      pair.second < 0 || std::max(pair.first, pair.second) >= size) {
    bad_input("--pairs {}: must be hosts, all, or pairs of ranks from 0 to {} such as 0-1", text, size - 1);
  }
  return {std::min(pair.first, pair.second), std::max(pair.first, pair.second)};
}

}  // namespace

std::vector<RankPair> parse_pairs(const std::string& text, const comm::Communicator& communicator) {
  if (text == "hosts") return pairs_of_hosts(communicator);
  if (text == "all") {
    std::vector<int> ranks;
    for (int rank = 0; rank < communicator.size(); ++rank) ranks.push_back(rank);
    return pairs_of(ranks);
  }
  std::vector<RankPair> pairs;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    pairs.push_back(parse_pair(rest.substr(0, comma), communicator.size()));
    if (comma == std::string_view::npos) return pairs;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace trireme::lab
