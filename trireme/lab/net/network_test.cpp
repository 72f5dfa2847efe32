#include "trireme/lab/net/network_test.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <map>
#include <string_view>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::lab {
namespace {

constexpr std::array kModes{MessageMode::ping_pong, MessageMode::one_way, MessageMode::bidirectional};
constexpr std::int64_t kMostSamples = 100, kLeastSamples = 2;
// Messages in a row in the one-way test, fewer if they are large.
constexpr std::int64_t kBurstMessages = 64, kBurstBytes = 4 << 20;

std::int64_t burst_of(std::int64_t bytes) { return std::clamp<std::int64_t>(kBurstBytes / bytes, 1, kBurstMessages); }

// Messages in the smallest unit that can be timed.
std::int64_t messages_per_round(MessageMode mode, std::int64_t bytes) {
  return mode == MessageMode::ping_pong ? 2 : mode == MessageMode::one_way ? burst_of(bytes) : 1;
}

// The bytes of a sample: words of a sequence with a different start for each sample. Consecutive samples differ from
// the first byte on, so that stale data is not mistaken for new.
std::uint64_t word(std::uint64_t pattern, std::size_t index) {
  return (pattern * 0x9e3779b97f4a7c15ULL + index) * 0xbf58476d1ce4e5b9ULL;
}

void fill(std::span<std::byte> data, std::uint64_t pattern) {
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= data.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t value = word(pattern, at / sizeof(std::uint64_t));
    std::memcpy(data.data() + at, &value, sizeof value);
  }
  const std::uint64_t value = word(pattern, at / sizeof(std::uint64_t));
  std::memcpy(data.data() + at, &value, data.size() - at);
}

void verify(std::span<const std::byte> data, std::uint64_t pattern) {
  for (std::size_t at = 0; at < data.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t value = word(pattern, at / sizeof(std::uint64_t));
    const std::size_t count = std::min(sizeof value, data.size() - at);
    if (std::memcmp(data.data() + at, &value, count) == 0) continue;
    fail(ErrorKind::failed,
         "a message of {} was not received as it was sent: bytes differ from position {}; the transport or the network "
         "corrupts data",
         format_bytes(data.size()), at);
  }
}

std::span<std::byte> bytes_of(const AlignedMemory& memory, std::size_t bytes) {
  return {static_cast<std::byte*>(memory.at(0)), bytes};
}

std::int64_t buffer_bytes(const NetworkOptions& options) {
  const std::int64_t largest = options.max_bytes + options.perturbation;
  return std::max(largest, std::min(kBurstBytes, largest * kBurstMessages));
}

std::unique_ptr<NetworkLink> make_link(comm::Communicator& control, const NetworkTransport& transport,
                                       const RankPair& pair, const NetworkOptions& options) {
  const int peer = control.rank() == pair.first ? pair.second : pair.first;
  if (transport.communicator != nullptr) return make_transport_link(*transport.communicator, peer);
  return make_socket_link(control, peer, options.hosts.at(pair.first));
}

std::vector<MessageResult> measure_messages(comm::Communicator& control, const NetworkTransport& transport,
                                            const RankPair& pair, const NetworkOptions& options) {
  const auto link = make_link(control, transport, pair, options);
  PairTest test(*link, control.rank() == pair.first, options);
  std::vector<MessageResult> results;
  for (const MessageMode mode : kModes) {
    for (const std::int64_t bytes : message_sizes(options)) {
      try {
        results.push_back({mode, bytes, test.measure(mode, bytes)});
      } catch (const Error& error) {
        fail(error.kind(), "{} between rank {} and rank {} over {}, seen by rank {}: {}", to_string(mode), pair.first,
             pair.second, transport.name, control.rank(), error.what());
      }
    }
  }
  return results;
}

// Distributes the measurements of the pair's first rank to all.
void share_results(comm::Communicator& control, const NetworkOptions& options, PairResult& result) {
  std::size_t next = 0;
  for (const MessageMode mode : kModes) {
    for (const std::int64_t bytes : message_sizes(options)) {
      if (result.messages.size() == next) result.messages.push_back({mode, bytes, {}});
      std::vector<double>& seconds = result.messages[next++].seconds;
      std::uint64_t count = seconds.size();
      comm::broadcast(control, std::as_writable_bytes(std::span(&count, 1)), result.pair.first);
      seconds.resize(count);
      comm::broadcast(control, std::as_writable_bytes(std::span(seconds)), result.pair.first);
    }
  }
}

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

std::string_view to_string(MessageMode mode) {
  constexpr std::array<std::string_view, 3> kNames{"ping-pong", "one-way", "bidirectional"};
  return kNames.at(static_cast<std::size_t>(mode));
}

std::vector<std::int64_t> message_sizes(const NetworkOptions& options) {
  std::vector<std::int64_t> sizes;
  const auto add = [&](std::int64_t bytes) {
    for (const std::int64_t change : {-options.perturbation, std::int64_t{0}, options.perturbation}) {
      if (bytes + change >= 1) sizes.push_back(bytes + change);
    }
  };
  for (std::int64_t bytes = options.min_bytes; bytes < options.max_bytes; bytes *= 2) add(bytes);
  add(options.max_bytes);
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

double MessageResult::median() const { return perf::median(seconds); }
double MessageResult::jitter() const { return perf::jitter(seconds); }

double MessageResult::bytes_per_second() const {
  return (mode == MessageMode::bidirectional ? 2.0 : 1.0) * static_cast<double>(bytes) / median();
}

Repetitions plan_repetitions(double seconds_each, double seconds_in_all) {
  const double fitting = std::clamp(seconds_in_all / std::max(seconds_each, 1e-9), double{kLeastSamples}, 1e9);
  const auto repetitions = static_cast<std::int64_t>(fitting);
  const std::int64_t samples = std::min(repetitions, kMostSamples);
  return {.samples = samples, .per_sample = repetitions / samples};
}

PairTest::PairTest(NetworkLink& link, bool is_first, const NetworkOptions& options)
    : link_(link),
      is_first_(is_first),
      seconds_per_size_(options.seconds_per_size),
      out_(buffer_bytes(options)),
      in_(buffer_bytes(options)) {}

std::vector<double> PairTest::measure(MessageMode mode, std::int64_t bytes) {
  sample(mode, bytes, 1);  // opens connections, touches memory
  const Repetitions rounds = agree(sample(mode, bytes, 1));
  const auto messages = static_cast<double>(rounds.per_sample * messages_per_round(mode, bytes));
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < rounds.samples; ++i) {
    const double measured = sample(mode, bytes, rounds.per_sample) / messages;
    if (is_first_) seconds.push_back(measured);
  }
  return seconds;
}

Repetitions PairTest::agree(double seconds_per_round) {
  Repetitions repetitions;
  const auto bytes = std::as_writable_bytes(std::span(&repetitions, 1));
  if (is_first_) {
    repetitions = plan_repetitions(seconds_per_round, seconds_per_size_);
    link_.send(bytes);
  } else {
    link_.receive(bytes);
  }
  return repetitions;
}

double PairTest::sample(MessageMode mode, std::int64_t bytes, std::int64_t rounds) {
  ++sample_;
  const auto size = static_cast<std::size_t>(bytes);
  if (mode == MessageMode::ping_pong) return ping_pong(size, rounds);
  return mode == MessageMode::one_way ? one_way(size, rounds) : bidirectional(size, rounds);
}

// Before a sample: the second has nothing left to check. After: everything has reached it.
void PairTest::wait_for_second() {
  std::byte ready{};
  const auto one = std::span(&ready, 1);
  if (is_first_) {
    link_.receive(one);
  } else {
    link_.send(one);
  }
}

// Each side returns what it received, so that a wrong byte survives until the check at the end.
double PairTest::ping_pong(std::size_t bytes, std::int64_t rounds) {
  if (is_first_) fill(bytes_of(out_, bytes), pattern(true));
  wait_for_second();
  const auto start = SteadyClock::now();
  for (std::int64_t i = 0; i < rounds; ++i) {
    if (is_first_) {
      link_.send(bytes_of(out_, bytes));
      link_.receive(bytes_of(in_, bytes));
      std::swap(out_, in_);
    } else {
      link_.receive(bytes_of(out_, bytes));
      link_.send(bytes_of(out_, bytes));
    }
  }
  const double seconds = seconds_since(start);
  verify(bytes_of(out_, bytes), pattern(true));
  return seconds;
}

double PairTest::one_way(std::size_t bytes, std::int64_t rounds) {
  const auto messages = static_cast<std::size_t>(burst_of(static_cast<std::int64_t>(bytes)));
  if (is_first_) fill(bytes_of(out_, messages * bytes), pattern(true));
  std::byte acknowledgement{};
  wait_for_second();
  const auto start = SteadyClock::now();
  for (std::int64_t i = 0; i < rounds; ++i) {
    if (is_first_) {
      link_.send(bytes_of(out_, messages * bytes), messages);
      link_.receive({&acknowledgement, 1});
    } else {
      link_.receive(bytes_of(in_, messages * bytes), messages);
      link_.send({&acknowledgement, 1});
    }
  }
  const double seconds = seconds_since(start);
  if (!is_first_) verify(bytes_of(in_, messages * bytes), pattern(true));
  return seconds;
}

// Returns received data in the next round, for the same reason. The second rank's clock starts and stops earlier than
// the first hears of it; the two effects cancel.
double PairTest::bidirectional(std::size_t bytes, std::int64_t rounds) {
  fill(bytes_of(out_, bytes), pattern(is_first_));
  wait_for_second();
  const auto start = SteadyClock::now();
  for (std::int64_t i = 0; i < rounds; ++i) {
    link_.exchange(bytes_of(out_, bytes), bytes_of(in_, bytes));
    std::swap(out_, in_);
  }
  wait_for_second();
  const double seconds = seconds_since(start);
  const bool holds_others = rounds % 2 == 1;
  verify(bytes_of(out_, bytes), pattern(is_first_ != holds_others));
  return seconds;
}

PairResult measure_pair(comm::Communicator& control, const NetworkTransport& transport, const RankPair& pair,
                        const NetworkOptions& options) {
  const auto member = [&](int rank) { return control.members()[rank]; };
  PairResult result{.transport = transport.name,
                    .pair = pair,
                    .same_host = member(pair.first).node == member(pair.second).node,
                    .messages = {},
                    .fit = {}};
  const bool takes_part = control.rank() == pair.first || control.rank() == pair.second;
  if (takes_part) result.messages = measure_messages(control, transport, pair, options);
  const auto timeout = control.timeout();
  control.set_timeout(comm::Communicator::kUnevenTimeout);
  comm::barrier(control);
  control.set_timeout(timeout);
  share_results(control, options, result);
  const auto times_of = [&](MessageMode mode) {
    std::vector<comm::MessageTime> times;
    for (const MessageResult& message : result.messages) {
      if (message.mode == mode) times.push_back({message.bytes, message.median()});
    }
    return times;
  };
  result.fit = comm::fit_link(times_of(MessageMode::ping_pong), times_of(MessageMode::one_way));
  return result;
}

comm::NetworkFits fits_of(std::span<const PairResult> pairs, const comm::MeasuredWhen& when) {
  std::map<std::string, std::vector<comm::LinkFit>> same, other;
  for (const PairResult& pair : pairs) {
    (pair.same_host ? same : other)[pair.transport].push_back(pair.fit);
  }
  comm::NetworkFits fits;
  for (const auto& [name, list] : same) fits[name].same_host = {comm::median_fit(list), when};
  for (const auto& [name, list] : other) fits[name].other_host = {comm::median_fit(list), when};
  return fits;
}

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
