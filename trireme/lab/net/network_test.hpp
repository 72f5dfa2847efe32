// Measures links between pairs of ranks like NetPIPE: messages of growing size as ping-pong, one way and both ways at
// once, each size for a given time, every byte checked. All ranks make the same calls; those outside the pair wait.
// Used by `trireme net`; tests run it over threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/comm/communicator.hpp"
#include "trireme/comm/link_fit.hpp"
#include "trireme/comm/network_file.hpp"

namespace trireme::lab {

enum class MessageMode : std::uint8_t {
  ping_pong,      // there and back: half the time
  one_way,        // several messages in a row, then an acknowledgement: time per message
  bidirectional,  // both ranks send at once: time until both have received
};
std::string_view to_string(MessageMode mode);

struct NetworkOptions {
  std::int64_t min_bytes = 1, max_bytes = std::int64_t{1} << 28;
  std::int64_t perturbation = 0;        // also measure each size minus and plus this many bytes
  double seconds_per_size = 0.2;        // and mode
  std::vector<std::string> hosts = {};  // by rank: address for TCP sockets
};

std::vector<std::int64_t> message_sizes(const NetworkOptions& options);  // powers of two, both ends included

struct RankPair {
  int first = 0, second = 1;  // first < second
  bool operator==(const RankPair&) const = default;
};

// "hosts": the first ranks of every two hosts, and the first two ranks of each host. "all": every two ranks. Or a list
// such as "0-1,0-2". Error(bad_input) for ranks that do not exist.
std::vector<RankPair> parse_pairs(const std::string& text, const comm::Communicator& communicator);

// For one size and mode.
struct MessageResult {
  MessageMode mode = MessageMode::ping_pong;
  std::int64_t bytes = 0;
  std::vector<double> seconds;  // per message, one value per sample
  double median() const;
  double jitter() const;
  double bytes_per_second() const;  // from the median; both directions together
};

struct PairResult {
  std::string transport;  // "tcp", "grpc", "ucx", "mpi"
  RankPair pair;
  bool same_host = false;
  std::vector<MessageResult> messages;
  comm::LinkFit fit;
};

// A communicator with its name, or "tcp" and null.
struct NetworkTransport {
  std::string name;
  comm::Communicator* communicator = nullptr;
};

// Collective over the control communicator; all ranks get the result. Error(failed) if received bytes are wrong.
PairResult measure_pair(comm::Communicator& control, const NetworkTransport& transport, const RankPair& pair,
                        const NetworkOptions& options);

// How often to repeat something of known duration within a time limit: samples of several repetitions each.
struct Repetitions {
  std::int64_t samples = 1, per_sample = 1;
};
Repetitions plan_repetitions(double seconds_each, double seconds_in_all);

// A connection of two ranks, over a transport or over a plain TCP socket as the reference. Each of the two has one.
class NetworkLink {
 public:
  virtual ~NetworkLink() = default;
  NetworkLink(const NetworkLink&) = delete;
  NetworkLink& operator=(const NetworkLink&) = delete;

  // Messages of equal size, contiguous, all in flight at once. Return when memory may be reused, or all have arrived.
  virtual void send(std::span<const std::byte> data, std::size_t messages = 1) = 0;
  virtual void receive(std::span<std::byte> data, std::size_t messages = 1) = 0;
  virtual void exchange(std::span<const std::byte> out, std::span<std::byte> in) = 0;  // one message each way at once

 protected:
  NetworkLink() = default;
};

// The communicator must outlive the link.
std::unique_ptr<NetworkLink> make_transport_link(comm::Communicator& communicator, int peer);

// Called by both ranks: the lower one listens at listener_host, the other connects, after they agree on a port over the
// communicator. The sockets use the communicator's timeout.
std::unique_ptr<NetworkLink> make_socket_link(comm::Communicator& control, int peer, const std::string& listener_host);

// One side of a pair: both make the same sequence of measure() calls.
class PairTest {
 public:
  PairTest(NetworkLink& link, bool is_first, const NetworkOptions& options);

  // Seconds per message, one value per sample; empty on the pair's second rank.
  std::vector<double> measure(MessageMode mode, std::int64_t bytes);

 private:
  double sample(MessageMode mode, std::int64_t bytes, std::int64_t rounds);  // seconds for all rounds
  double ping_pong(std::size_t bytes, std::int64_t rounds);
  double one_way(std::size_t bytes, std::int64_t rounds);
  double bidirectional(std::size_t bytes, std::int64_t rounds);
  Repetitions agree(double seconds_per_round);
  void wait_for_second();
  std::uint64_t pattern(bool of_first) const { return 2 * sample_ + (of_first ? 0 : 1); }

  NetworkLink& link_;
  bool is_first_;
  double seconds_per_size_;
  AlignedMemory out_, in_;
  std::uint64_t sample_ = 0;
};

// Medians over the pairs of each kind.
comm::NetworkFits fits_of(std::span<const PairResult> pairs, const comm::MeasuredWhen& when);

}  // namespace trireme::lab
