// The bandwidth of all-reduce by each algorithm, beside MPI_Allreduce, interleaved so that all see the same machine.
//   mpirun -np 2 build/release/bench/bench_all_reduce [ROUNDS [MEGABYTES...]]
// Bus bandwidth is 2 (N - 1) / N x bytes / seconds: what a link must carry, comparable between numbers of ranks. The
// seconds of a round are those of the slowest rank. The ratio is the median over rounds of MPI's seconds by ours.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/text_table.hpp"
#include "trireme/comm/all_reducer.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/mpi/mpi_world.hpp"

namespace {

using namespace trireme;
using namespace trireme::comm;

struct Contestant {
  std::string name;
  std::function<void(std::size_t count)> reduce;
  std::vector<double> seconds;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double slowest_seconds(Communicator& communicator, const std::function<void()>& work) {
  barrier(communicator);
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  const auto all = all_gather_value(communicator, taken.count());
  return *std::max_element(all.begin(), all.end());
}

void print(const std::vector<Contestant>& contestants, int ranks, double bytes) {
  using enum Align;
  TextTable table({{"all-reduce"}, {"median ms", right}, {"best ms", right}, {"bus GB/s", right}, {"x MPI", right}});
  const std::vector<double>& reference = contestants.front().seconds;
  for (const Contestant& contestant : contestants) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < reference.size(); ++i) ratios.push_back(reference[i] / contestant.seconds[i]);
    const double seconds = median(contestant.seconds);
    table.add_row({contestant.name, fmt::format("{:.2f}", seconds * 1e3),
                   fmt::format("{:.2f}", *std::min_element(contestant.seconds.begin(), contestant.seconds.end()) * 1e3),
                   fmt::format("{:.2f}", 2.0 * (ranks - 1) / ranks * bytes / seconds * 1e-9),
                   fmt::format("{:.2f}", median(ratios))});
  }
  fmt::print("{} ranks, {:.3f} MB, {} rounds\n{}\n", ranks, bytes * 1e-6, reference.size(), table.text());
}

void measure(Communicator& communicator, int rounds, const std::vector<double>& megabytes) {
  const double largest = *std::max_element(megabytes.begin(), megabytes.end()) * 1e6;
  const auto arena = communicator.share(static_cast<std::int64_t>(largest));
  if (arena == nullptr) fail(ErrorKind::unavailable, "memory cannot be shared on this machine");
  const AlignedMemory own(static_cast<std::int64_t>(largest));
  auto* const apart = static_cast<float*>(own.at(0));
  auto* const shared = reinterpret_cast<float*>(arena->data());
  std::fill_n(apart, static_cast<std::size_t>(largest) / sizeof(float), 0.0f);  // sums that do not grow

  std::vector<std::unique_ptr<AllReducer>> reducers;
  const auto with = [&](Algorithm algorithm, float* values) -> std::function<void(std::size_t)> {
    reducers.push_back(
        std::make_unique<AllReducer>(communicator, AllReduceOptions{.algorithm = algorithm}, arena.get()));
    return [reducer = reducers.back().get(), values](std::size_t count) {
      reducer->reduce({values, count}, Reduction::sum);
    };
  };
  std::vector<Contestant> contestants{
      {"MPI_Allreduce",
       [&](std::size_t count) {
         MPI_Allreduce(MPI_IN_PLACE, apart, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
       },
       {}},
      {"library (MPI_Iallreduce)", with(Algorithm::library, apart), {}},
      {"ring", with(Algorithm::ring, apart), {}},
      {"ring in the arena", with(Algorithm::ring, shared), {}},
      {"halving_doubling", with(Algorithm::halving_doubling, apart), {}},
      {"tree", with(Algorithm::tree, apart), {}},
      {"hierarchical, staged", with(Algorithm::hierarchical, apart), {}},
      {"hierarchical in the arena", with(Algorithm::hierarchical, shared), {}},
  };
  for (const double size : megabytes) {
    const auto count = static_cast<std::size_t>(size * 1e6 / sizeof(float));
    for (Contestant& contestant : contestants) contestant.reduce(count);  // warm
    for (Contestant& contestant : contestants) contestant.seconds.clear();
    for (int round = 0; round < rounds; ++round) {
      for (Contestant& contestant : contestants) {
        contestant.seconds.push_back(slowest_seconds(communicator, [&] { contestant.reduce(count); }));
      }
    }
    if (communicator.rank() == 0) print(contestants, communicator.size(), static_cast<double>(count * sizeof(float)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
    std::vector<double> megabytes;
    for (int i = 2; i < argc; ++i) megabytes.push_back(std::atof(argv[i]));
    if (megabytes.empty()) megabytes = {100, 10, 1, 0.1};
    const auto world = mpi::join();
    measure(world->communicator(), std::max(rounds, 1), megabytes);
    world->leave();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
