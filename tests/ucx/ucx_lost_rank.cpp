// Three ranks over UCX, of which the last is killed while the others have transfers with it under way: these fail with
// its name, while those between the others go on. Usage: ucx_lost_rank told|untold. Told: all on one node, the control
// says who is lost. Untold: as if on three nodes, nobody says anything but UCX. Ends with 0 if all holds.
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <vector>

#include "socket_control.hpp"
#include "tests/comm/suite_check.hpp"
#include "trireme/comm/backoff.hpp"
#include "trireme/comm/ucx/make_communicator.hpp"

namespace {

using namespace trireme::comm;
using namespace trireme::comm::testkit;

constexpr int kRanks = 3;
constexpr int kVictim = 2;
constexpr std::size_t kBytes = 8 << 20;
using Presences = std::array<std::atomic<Presence>, kRanks>;

// Waits by done() alone, which asks about this transfer only.
void finish(Communicator& communicator, Transfer transfer) {
  Backoff backoff;
  while (!communicator.done(transfer)) communicator.doze(backoff);
}

void exchange(Communicator& communicator, int with, std::vector<std::byte>& data) {
  std::vector<std::byte> received(kBytes);
  std::fill(data.begin(), data.end(), static_cast<std::byte>(communicator.rank() + 1));
  const Transfer receive = communicator.start_receive(received, with, 1);
  const Transfer send = communicator.start_send(data, with, 1);
  finish(communicator, receive);
  finish(communicator, send);
  expect(received.front() == static_cast<std::byte>(with + 1) && received.back() == received.front(),
         "what is received is what was sent");
}

void expect_failure(Communicator& communicator, Transfer transfer) {
  const std::string message = error_of([&] { finish(communicator, transfer); });
  expect_contains(message, fmt::format("with rank {} (", kVictim));
  fmt::print("rank {}: {}\n", communicator.rank(), message);
}

void run_rank(Communicator& communicator, bool told) {
  std::vector<std::byte> data(kBytes);
  std::array<std::byte, 1000> never{};
  if (communicator.rank() == kVictim) {
    for (const int other : {0, 1}) exchange(communicator, other, data);
    raise(SIGKILL);
  }
  const int other = 1 - communicator.rank();
  exchange(communicator, kVictim, data);

  const std::array under_way{communicator.start_receive(never, kVictim, 2), communicator.start_send(data, kVictim, 3)};
  exchange(communicator, other, data);
  for (const Transfer transfer : under_way) expect_failure(communicator, transfer);
  // One that begins when it is known.
  expect_failure(communicator, communicator.start_send(data, kVictim, 3));
  expect_failure(communicator, communicator.start_receive(never, kVictim, 2));
  exchange(communicator, other, data);
  expect(communicator.presence(other) == Presence::here, "the other one is still there");
  if (told) expect(communicator.presence(kVictim) == Presence::lost, "the control is asked who is lost");
  // Neither leaves while the other is still talking.
  std::byte last{};
  finish(communicator, communicator.start_send({&last, 1}, other, 5));
  finish(communicator, communicator.start_receive({&last, 1}, other, 5));
}

int rank_main(int rank, const std::vector<int>& sockets, const Presences& presences, bool told) {
  alarm(90);  // ends a hang
  try {
    SocketControl control(rank, sockets, presences.data());
    control.introduce("here", told ? "node" : fmt::format("node {}", rank));
    const auto communicator = ucx::make_communicator(control);
    fmt::print("rank {}: {}\n", rank, communicator->transport());
    run_rank(*communicator, told);
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", rank, error.what());
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool told = argc > 1 && std::string_view(argv[1]) == "told";
  void* shared = mmap(nullptr, sizeof(Presences), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  Presences& presences = *new (shared) Presences{};
  std::vector<std::vector<int>> sockets(kRanks, std::vector<int>(kRanks, -1));
  for (std::size_t a = 0; a < kRanks; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      int pair[2];
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
      sockets[a][b] = pair[0];
      sockets[b][a] = pair[1];
    }
  }
  std::array<pid_t, kRanks> pids{};
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      const int code = rank_main(rank, sockets[rank], presences, told);
      std::fflush(nullptr);
      std::_Exit(code);
    }
    pids[rank] = pid;
  }
  int failures = 0;
  for (int ended = 0; ended < kRanks; ++ended) {
    int status = 0;
    const pid_t pid = wait(&status);
    if (pid == pids[kVictim]) {
      if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) ++failures;
      if (told) presences[kVictim] = Presence::lost;
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      ++failures;
    }
  }
  return failures == 0 ? 0 : 1;
}
