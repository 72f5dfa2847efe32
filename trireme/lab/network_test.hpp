// Measures the links between pairs of ranks in NetPIPE's manner: messages of growing size there and back, one way and
// both ways at once, each size for a given time, and every byte checked. Every rank of a job calls the same functions;
// the ranks that are not of the pair wait. Used by `trireme net`; runs over threads in tests.
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
  ping_pong,      // the message goes and comes back: half of the time
  one_way,        // several messages in a row, then an acknowledgement: the time per message
  bidirectional,  // both ranks send at the same time: the time until both have received
};
std::string_view to_string(MessageMode mode);

struct NetworkOptions {
  std::int64_t min_bytes = 1, max_bytes = std::int64_t{1} << 28;
  std::int64_t perturbation = 0;        // each size also with so many bytes less and more
  double seconds_per_size = 0.2;        // and mode
  std::vector<std::string> hosts = {};  // by rank: where TCP sockets reach it
};

// Powers of two from the least to the most bytes, both included.
std::vector<std::int64_t> message_sizes(const NetworkOptions& options);

struct RankPair {
  int first = 0, second = 1;  // first < second
  bool operator==(const RankPair&) const = default;
};

// "hosts": the first ranks of every two hosts, and of each host its first two ranks. "all": every two ranks. Or a list
// such as "0-1,0-2". Error(bad_input) where there are no such ranks.
std::vector<RankPair> parse_pairs(const std::string& text, const comm::Communicator& communicator);

// Of one size and mode.
struct MessageResult {
  MessageMode mode = MessageMode::ping_pong;
  std::int64_t bytes = 0;
  std::vector<double> seconds;  // of one message, per sample
  double median() const;
  double jitter() const;
  double bytes_per_second() const;  // of the median; both directions together
};

struct PairResult {
  std::string transport;  // "tcp", "grpc", "ucx", "mpi"
  RankPair pair;
  bool same_host = false;
  std::vector<MessageResult> messages;
  comm::LinkFit fit;
};

// What a job can send over: a communicator with its name, or "tcp" and none.
struct NetworkTransport {
  std::string name;
  comm::Communicator* communicator = nullptr;
};

// Collective over the control; the result is known to all ranks. Error(failed) where bytes arrive that were not sent.
PairResult measure_pair(comm::Communicator& control, const NetworkTransport& transport, const RankPair& pair,
                        const NetworkOptions& options);

// How often something is done that takes so long, within a time: samples of several repetitions each.
struct Repetitions {
  std::int64_t samples = 1, per_sample = 1;
};
Repetitions plan_repetitions(double seconds_each, double seconds_in_all);

// The connection of two ranks: over a transport of the project, or over a plain TCP socket, which is what the
// transports are compared with. Each of the two ranks has one.
class NetworkLink {
 public:
  virtual ~NetworkLink() = default;
  NetworkLink(const NetworkLink&) = delete;
  NetworkLink& operator=(const NetworkLink&) = delete;

  // So many messages of equal size that lie one after the other, all under way at the same time. Return when the memory
  // may be used again, or when all have arrived.
  virtual void send(std::span<const std::byte> data, std::size_t messages = 1) = 0;
  virtual void receive(std::span<std::byte> data, std::size_t messages = 1) = 0;
  // One message each way at the same time.
  virtual void exchange(std::span<const std::byte> out, std::span<std::byte> in) = 0;

 protected:
  NetworkLink() = default;
};

// The communicator outlives the link.
std::unique_ptr<NetworkLink> make_transport_link(comm::Communicator& communicator, int peer);

// By the two ranks together: the lower one listens, and the other connects to it at this host, after they have agreed
// on a port over the communicator. Its timeout is that of the sockets.
std::unique_ptr<NetworkLink> make_socket_link(comm::Communicator& control, int peer, const std::string& listener_host);

// One side of a pair: both do the same sequence of measure().
class PairTest {
 public:
  PairTest(NetworkLink& link, bool is_first, const NetworkOptions& options);

  // Seconds of one message, per sample; nothing for the second of the pair.
  std::vector<double> measure(MessageMode mode, std::int64_t bytes);

 private:
  // Seconds of so many rounds.
  double sample(MessageMode mode, std::int64_t bytes, std::int64_t rounds);
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
