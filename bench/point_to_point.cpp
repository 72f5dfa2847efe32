// How fast a tensor gets from one process to another on this machine, by each transport, beside a plain TCP socket and
// memcpy, interleaved so that all see the same machine.
//   build/release/bench/bench_point_to_point [ROUNDS [MEGABYTES [STREAMS:PART_KIB ...]]]
// The seconds of a round end when the receiver has said, by a byte through a pipe, that it has everything. Ratios are
// medians over rounds. Further arguments are variants of gRPC to compare: number of streams and size of parts.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/text_table.hpp"
#include "trireme/base/unique_fd.hpp"
#include "trireme/comm/grpc/grpc_world.hpp"
#include "trireme/comm/ucx/make_communicator.hpp"
#include "trireme/features.hpp"

namespace {

using namespace trireme;

// One way to move a tensor: made in both processes, which then call one of the two each.
class Carrier {
 public:
  virtual ~Carrier() = default;
  virtual void send(std::span<const std::byte> tensor) = 0;
  virtual void receive(std::span<std::byte> tensor) = 0;
};

struct Contestant {
  std::string name;
  std::function<std::unique_ptr<Carrier>(int rank)> make;  // rank 0 sends
  std::vector<double> seconds = {};
};

void check(bool is_good, const char* doing) {
  if (!is_good) fail(ErrorKind::failed, "{}: {}", doing, std::strerror(errno));
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

// A socket that listens on a free port.
UniqueFd listen_somewhere(int& port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  check(bind(socket.get(), generic, length) == 0 && listen(socket.get(), 1) == 0, "listening");
  check(getsockname(socket.get(), generic, &length) == 0, "asking for the port");
  port = ntohs(address.sin_port);
  return socket;
}

class TcpCarrier : public Carrier {
 public:
  TcpCarrier(int rank, int listener, int port) {
    if (rank == 1) {
      socket_ = UniqueFd(accept(listener, nullptr, nullptr));
      check(socket_.is_open(), "accepting");
      return;
    }
    socket_ = UniqueFd(::socket(AF_INET, SOCK_STREAM, 0));
    const sockaddr_in address = loopback(port);
    check(connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "connecting");
  }
  void send(std::span<const std::byte> tensor) override {
    while (!tensor.empty()) {
      const ssize_t bytes = ::send(socket_.get(), tensor.data(), tensor.size(), 0);
      check(bytes > 0, "sending");
      tensor = tensor.subspan(bytes);
    }
  }
  void receive(std::span<std::byte> tensor) override {
    while (!tensor.empty()) {
      const ssize_t bytes = recv(socket_.get(), tensor.data(), tensor.size(), 0);
      check(bytes > 0, "receiving");
      tensor = tensor.subspan(bytes);
    }
  }

 private:
  UniqueFd socket_;
};

// Any transport of trireme.
class WorldCarrier : public Carrier {
 public:
  explicit WorldCarrier(std::unique_ptr<comm::World> world) : world_(std::move(world)) {}
  ~WorldCarrier() override { world_->leave(); }
  void send(std::span<const std::byte> tensor) override { world_->communicator().send(tensor, 1, 0); }
  void receive(std::span<std::byte> tensor) override { world_->communicator().receive(tensor, 0, 0); }

 private:
  std::unique_ptr<comm::World> world_;
};

// What no transport can be faster than: the sender copies, the receiver has nothing to do.
class MemcpyCarrier : public Carrier {
 public:
  explicit MemcpyCarrier(std::size_t bytes) : target_(static_cast<std::int64_t>(bytes)) {}
  void send(std::span<const std::byte> tensor) override { std::memcpy(target_.at(0), tensor.data(), tensor.size()); }
  void receive(std::span<std::byte>) override {}

 private:
  AlignedMemory target_;
};

// Joins two tasks over gRPC when called with the rank.
std::function<std::unique_ptr<comm::World>(int)> two_tasks(int streams, std::int64_t part_bytes) {
  std::vector<comm::rpc::RpcTask> tasks;
  std::vector<UniqueFd> sockets;  // both at once, so that the ports differ; free again when the tasks listen
  for (const char* name : {"sender", "receiver"}) {
    int port = 0;
    sockets.push_back(listen_somewhere(port));
    tasks.push_back({name, fmt::format("127.0.0.1:{}", port)});
  }
  return [=](int rank) {
    return comm::rpc::join({.tasks = tasks,
                            .self = rank,
                            .secret = "of the bench",
                            .streams = streams,
                            .part_bytes = part_bytes,
                            .log = [](const std::string& line) { fmt::print(stderr, "{}\n", line); }});
  };
}

Contestant grpc_contestant(int streams, std::int64_t part_bytes) {
  const auto join = two_tasks(streams, part_bytes);
  return {fmt::format("gRPC, {} x {} KiB", streams, part_bytes >> 10),
          [join](int rank) { return std::make_unique<WorldCarrier>(join(rank)); }};
}

class UcxCarrier : public Carrier {
 public:
  explicit UcxCarrier(std::unique_ptr<comm::World> control)
      : control_(std::move(control)), communicator_(comm::ucx::make_communicator(control_->communicator())) {}
  ~UcxCarrier() override {
    communicator_.reset();
    control_->leave();
  }
  void send(std::span<const std::byte> tensor) override { communicator_->send(tensor, 1, 0); }
  void receive(std::span<std::byte> tensor) override { communicator_->receive(tensor, 0, 0); }

 private:
  std::unique_ptr<comm::World> control_;
  std::unique_ptr<comm::Communicator> communicator_;
};

Contestant ucx_contestant() {
  const comm::rpc::RpcOptions defaults;
  const auto join = two_tasks(defaults.streams, defaults.part_bytes);
  return {"UCX", [join](int rank) { return std::make_unique<UcxCarrier>(join(rank)); }};
}

// Both processes go through the same rounds; the sender measures.
void run(std::vector<Contestant>& contestants, int rank, int rounds, std::size_t bytes, int pipe) {
  const AlignedMemory memory(static_cast<std::int64_t>(bytes));  // what variables and gradients lie in
  const std::span tensor(static_cast<std::byte*>(memory.at(0)), bytes);
  std::fill(tensor.begin(), tensor.end(), static_cast<std::byte>(rank));
  std::vector<std::unique_ptr<Carrier>> carriers;
  for (const Contestant& contestant : contestants) carriers.push_back(contestant.make(rank));
  char word = 0;
  for (int round = -1; round < rounds; ++round) {  // the first warms up
    for (std::size_t turn = 0; turn < carriers.size(); ++turn) {
      const std::size_t i = (turn + static_cast<std::size_t>(round + 1)) % carriers.size();  // nobody is always first
      if (rank == 1) {
        carriers[i]->receive(tensor);
        check(write(pipe, &word, 1) == 1, "acknowledging");
        continue;
      }
      const auto start = std::chrono::steady_clock::now();
      carriers[i]->send(tensor);
      check(read(pipe, &word, 1) == 1, "waiting for the receiver");
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      if (round >= 0) contestants[i].seconds.push_back(taken.count());
    }
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print(const std::vector<Contestant>& contestants, double bytes) {
  using enum Align;
  TextTable table({{"carrier"},
                   {"median ms", right},
                   {"GB/s", right},
                   {"best GB/s", right},
                   {"x TCP", right},
                   {"x memcpy", right}});
  const auto ratio = [](const Contestant& reference, const Contestant& contestant) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < reference.seconds.size(); ++i)
      ratios.push_back(reference.seconds[i] / contestant.seconds[i]);
    return fmt::format("{:.2f}", median(ratios));
  };
  for (const Contestant& contestant : contestants) {
    const double seconds = median(contestant.seconds);
    const double best = *std::min_element(contestant.seconds.begin(), contestant.seconds.end());
    table.add_row({contestant.name, fmt::format("{:.2f}", seconds * 1e3), fmt::format("{:.2f}", bytes / seconds * 1e-9),
                   fmt::format("{:.2f}", bytes / best * 1e-9), ratio(contestants[0], contestant),
                   ratio(contestants[1], contestant)});
  }
  fmt::print("{:.0f} MB from one process to another, {} rounds\n{}\n", bytes * 1e-6, contestants[0].seconds.size(),
             table.text());
}

}  // namespace

int main(int argc, char** argv) {
  trireme::keep_freed_memory();  // as the program does
  try {
    const int rounds = argc > 1 ? std::max(std::atoi(argv[1]), 1) : 9;
    const auto bytes = static_cast<std::size_t>((argc > 2 ? std::atof(argv[2]) : 100) * 1e6);
    int port = 0;
    const UniqueFd listener = listen_somewhere(port);
    const comm::rpc::RpcOptions defaults;
    std::vector<Contestant> contestants{
        {"TCP socket", [&](int rank) { return std::make_unique<TcpCarrier>(rank, listener.get(), port); }},
        {"memcpy", [&](int) { return std::make_unique<MemcpyCarrier>(bytes); }},
        grpc_contestant(defaults.streams, defaults.part_bytes),
    };
    if constexpr (TRIREME_WITH_UCX) contestants.push_back(ucx_contestant());
    for (int i = 3; i < argc; ++i) {
      int streams = 0, kib = 0;
      if (std::sscanf(argv[i], "%d:%d", &streams, &kib) != 2) bad_input("'{}' is not STREAMS:PART_KIB", argv[i]);
      contestants.push_back(grpc_contestant(streams, std::int64_t{kib} << 10));
    }
    int pipe[2];
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, pipe) == 0, "making a pipe");
    const pid_t receiver = fork();
    check(receiver >= 0, "starting the receiver");
    if (receiver == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      run(contestants, 1, rounds, bytes, pipe[1]);
      return 0;
    }
    close(pipe[1]);  // so that waiting for a receiver that has failed ends
    run(contestants, 0, rounds, bytes, pipe[0]);
    waitpid(receiver, nullptr, 0);
    print(contestants, static_cast<double>(bytes));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
