// The rate at which UCX moves data between two processes, beside memcpy, interleaved so that all see the same machine.
//   mpirun -np 2 build/release/bench/bench_ucx_rate [ROUNDS [MEGABYTES]]
// A round is timed by the receiving rank, from a barrier to the last byte. The ratio is the median over rounds of
// memcpy's seconds by a carrier's. Latency is half of a round trip of 8 bytes.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/base/error.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/mpi/mpi_world.hpp"
#include "trireme/comm/ucx/make_communicator.hpp"
#include "trireme/report/table.hpp"

namespace {

using namespace trireme;
using namespace trireme::comm;

// One way from the memory of rank 0 into that of rank 1.
struct Carrier {
  std::string name;
  std::function<void(std::size_t bytes)> carry;  // called by both ranks
  std::vector<double> seconds;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Carrier message_carrier(std::string name, Communicator& communicator, void* source, void* target) {
  return {std::move(name),
          [&communicator, source, target](std::size_t bytes) {
            if (communicator.rank() == 0) {
              communicator.send({static_cast<const std::byte*>(source), bytes}, 1, 0);
            } else {
              communicator.receive({static_cast<std::byte*>(target), bytes}, 0, 0);
            }
          },
          {}};
}

void print_rates(const std::vector<Carrier>& carriers, double bytes) {
  using enum report::Align;
  report::Table table({{"carrier"}, {"median GB/s", right}, {"best GB/s", right}, {"x memcpy", right}});
  const std::vector<double>& reference = carriers.front().seconds;
  for (const Carrier& carrier : carriers) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < reference.size(); ++i) ratios.push_back(reference[i] / carrier.seconds[i]);
    const double best = *std::min_element(carrier.seconds.begin(), carrier.seconds.end());
    table.add_row({carrier.name, fmt::format("{:.2f}", bytes / median(carrier.seconds) * 1e-9),
                   fmt::format("{:.2f}", bytes / best * 1e-9), fmt::format("{:.2f}", median(ratios))});
  }
  fmt::print("{:.0f} MB, {} rounds\n{}\n", bytes * 1e-6, reference.size(), table.text());
}

// Includes how long a sleeping rank takes to wake up, and what the waiting costs.
void print_latency(Communicator& communicator) {
  constexpr int kTrips = 1000;
  std::byte data[8] = {};
  const int other = 1 - communicator.rank();
  std::vector<double> trips;
  const std::clock_t cpu_start = std::clock();
  const double all = seconds_of([&] {
    for (int i = 0; i < kTrips; ++i) {
      trips.push_back(seconds_of([&] {
        if (communicator.rank() == 0) communicator.send(data, other, 0);
        communicator.receive(data, other, 0);
        if (communicator.rank() == 1) communicator.send(data, other, 0);
      }));
    }
  });
  if (communicator.rank() != 0) return;
  fmt::print("{}: latency {:.1f} us, {:.0f} % of a core\n", communicator.transport(), median(trips) / 2 * 1e6,
             100.0 * static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC / all);
}

void measure(Communicator& control, int rounds, double megabytes) {
  const auto data = ucx::make_communicator(control);
  const auto bytes = static_cast<std::size_t>(megabytes * 1e6);
  const AlignedMemory source(static_cast<std::int64_t>(bytes));
  const AlignedMemory target(static_cast<std::int64_t>(bytes));
  std::memset(source.at(0), 1, bytes);

  std::vector<Carrier> carriers{
      {"memcpy",
       [&](std::size_t count) {
         if (control.rank() == 1) std::memcpy(target.at(0), source.at(0), count);
       },
       {}},
      message_carrier("UCX", *data, source.at(0), target.at(0)),
      message_carrier("MPI", control, source.at(0), target.at(0)),
  };
  for (Carrier& carrier : carriers) carrier.carry(bytes);  // warm
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < carriers.size(); ++i) {
      // In turn, so that none always finds what another has left in the cache.
      Carrier& carrier = carriers[(static_cast<std::size_t>(round) + i) % carriers.size()];
      barrier(control);
      carrier.seconds.push_back(seconds_of([&] { carrier.carry(bytes); }));
    }
  }
  barrier(control);
  print_latency(*data);
  print_latency(control);
  std::fflush(stdout);
  barrier(control);
  if (control.rank() == 1) print_rates(carriers, static_cast<double>(bytes));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto world = mpi::join();
    if (world->communicator().size() != 2) bad_input("this measures between 2 ranks: mpirun -np 2");
    measure(world->communicator(), std::max(argc > 1 ? std::atoi(argv[1]) : 15, 1),
            argc > 2 ? std::atof(argv[2]) : 100);
    world->leave();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
