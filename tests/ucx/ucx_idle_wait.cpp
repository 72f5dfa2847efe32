// Two ranks over UCX's TCP, of which one is busy with something else and does not even answer connections: the other,
// who waits for it, leaves it the processor. Ends with 0 if that holds.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>

#include "socket_control.hpp"
#include "tests/comm/suite_check.hpp"
#include "trireme/comm/ucx/make_communicator.hpp"

namespace {

using namespace std::chrono_literals;
using namespace trireme::comm;
using namespace trireme::comm::testkit;
using Clock = std::chrono::steady_clock;

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void run_rank(Communicator& communicator) {
  std::byte value{7};
  if (communicator.rank() == 1) {
    std::this_thread::sleep_for(2s);
    communicator.wait(communicator.start_send({&value, 1}, 0, 1));
    communicator.wait(communicator.start_receive({&value, 1}, 0, 1));
    return;
  }
  const auto begun = Clock::now();
  const double before = processor_seconds();
  communicator.wait(communicator.start_receive({&value, 1}, 1, 1));
  const double used = processor_seconds() - before;
  const double waited = std::chrono::duration<double>(Clock::now() - begun).count();
  communicator.wait(communicator.start_send({&value, 1}, 1, 1));
  fmt::print("waited {:.2f} s with {:.2f} s of the processor\n", waited, used);
  expect(used < waited / 2, "who waits sleeps");
}

int rank_main(int rank, const std::vector<int>& sockets) {
  alarm(90);  // ends a hang
  const std::array<std::atomic<Presence>, 2> presences{};
  try {
    SocketControl control(rank, sockets, presences.data());
    control.introduce("here", fmt::format("node {}", rank));
    run_rank(*ucx::make_communicator(control));
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", rank, error.what());
    return 1;
  }
  return 0;
}

}  // namespace

int main() {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
  const pid_t other = fork();
  const int code = other == 0 ? rank_main(1, {pair[1], -1}) : rank_main(0, {-1, pair[0]});
  std::fflush(nullptr);
  if (other == 0) std::_Exit(code);
  int status = 0;
  waitpid(other, &status, 0);
  return code == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
