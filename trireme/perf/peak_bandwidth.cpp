#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/base/error.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/perf/peak.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::perf {
namespace {

using Clock = std::chrono::steady_clock;

// Four times the last level of all packages together, so that little of one pass is left for the next; bounded below
// for machines that hide their caches, and above by what is free.
std::int64_t array_bytes(const Machine& machine) {
  std::int64_t last_level = 0;
  if (!machine.caches.empty()) last_level = machine.caches.back().bytes * machine.caches.back().count;
  const std::int64_t wanted = std::max<std::int64_t>(4 * last_level, 128 << 20);
  const std::int64_t most = std::max<std::int64_t>(machine.available_bytes / 8, 4 << 20);
  return std::min(wanted, most) / 4096 * 4096;
}

// The part of an array that belongs to the calling thread of the team: whole pages.
struct Part {
  std::int64_t offset = 0, bytes = 0;
};
Part part_of_thread(std::int64_t total) {
  const std::int64_t pages = total / 4096, thread = omp_get_thread_num(), threads = omp_get_num_threads();
  const std::int64_t begin = pages * thread / threads, end = pages * (thread + 1) / threads;
  return {begin * 4096, (end - begin) * 4096};
}

// Four sums, so that the additions do not wait for each other.
std::uint64_t sum_of(const std::uint64_t* words, std::int64_t count) {
  std::uint64_t sums[4] = {};
  for (std::int64_t i = 0; i + 4 <= count; i += 4) {
    for (int lane = 0; lane < 4; ++lane) sums[lane] += words[i + lane];
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

// As many passes as fit into the time, at least five, after one that does not count.
template <typename Pass>
PassRates rates_of(double bytes, double seconds, Pass pass) {
  constexpr std::size_t kFewest = 5;
  std::vector<double> rates;
  pass();
  for (double total = 0; rates.size() < kFewest || total < seconds;) {
    const auto start = Clock::now();
    pass();
    const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    rates.push_back(bytes / elapsed);
    total += elapsed;
  }
  const auto [worst, best] = std::minmax_element(rates.begin(), rates.end());
  return {.best = *best, .median = median(rates), .worst = *worst, .passes = static_cast<int>(rates.size())};
}

}  // namespace

Bandwidth measure_memory_bandwidth(int threads, double seconds) {
  if (threads < 1) bad_input("cannot measure the memory bandwidth of {} threads; at least 1 is needed", threads);
  const std::int64_t bytes = array_bytes(read_machine());
  const AlignedMemory source(bytes), target(bytes);

  // Each thread touches its own part first, which puts the pages beside its core.
#pragma omp parallel num_threads(threads)
  {
    const Part part = part_of_thread(bytes);
    std::memset(source.at(part.offset), 1, part.bytes);
    std::memset(target.at(part.offset), 2, part.bytes);
  }

  const auto size = static_cast<double>(bytes);
  const PassRates copy = rates_of(2 * size, seconds / 2, [&] {
#pragma omp parallel num_threads(threads)
    {
      const Part part = part_of_thread(bytes);
      std::memcpy(target.at(part.offset), source.at(part.offset), part.bytes);
    }
  });

  volatile std::uint64_t sink = 0;  // keeps the compiler from dropping the reads
  const PassRates read = rates_of(size, seconds / 2, [&] {
    std::uint64_t sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
      const Part part = part_of_thread(bytes);
      sum += sum_of(static_cast<const std::uint64_t*>(source.at(part.offset)), part.bytes / 8);
    }
    sink = sum;
  });

  return {.copy = copy, .read = read, .threads = threads};
}

}  // namespace trireme::perf
