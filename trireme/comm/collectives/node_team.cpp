#include "trireme/comm/collectives/node_team.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>

#include "trireme/base/barrier.hpp"
#include "trireme/base/error.hpp"
#include "trireme/comm/arithmetic.hpp"
#include "trireme/comm/backoff.hpp"

namespace trireme::comm {
namespace {

// Interval of checking whether the others live and need this rank's help with their transfers.
constexpr std::int64_t kShortestSlice = 1'000'000;  // nanoseconds
constexpr std::int64_t kLongestSlice = 50'000'000;
constexpr int kSpins = 200;  // some microseconds

// std::atomic's wait only works between threads of one process.
void futex_wait(std::atomic<std::uint32_t>& value, std::uint32_t old, std::int64_t nanoseconds) {
  const timespec slice{.tv_sec = 0, .tv_nsec = nanoseconds};
  syscall(SYS_futex, &value, FUTEX_WAIT, old, &slice, nullptr, 0);
}
void futex_wake_all(std::atomic<std::uint32_t>& value) {
  syscall(SYS_futex, &value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Fits the L1 cache together with the sources.
constexpr std::size_t kStrip = 2048;

struct Block {
  std::size_t begin;
  std::size_t end;
};

void reduce_block(std::span<float* const> sources, std::span<float* const> targets, Block block, Reduction reduction,
                  float factor) {
  alignas(64) std::array<float, kStrip> sum;
  for (std::size_t at = block.begin; at < block.end; at += kStrip) {
    const std::size_t count = std::min(kStrip, block.end - at);
    std::memcpy(sum.data(), sources[0] + at, count * sizeof(float));
    for (std::size_t i = 1; i < sources.size(); ++i) {
      combine(sum.data(), sum.data(), sources[i] + at, count, reduction);
    }
    if (factor != 1.0f) scale(std::span(sum).first(count), factor);
    for (float* target : targets) std::memcpy(target + at, sum.data(), count * sizeof(float));
  }
}

// A few blocks per rank, so that ranks finish together, but large enough to be worth claiming.
std::size_t block_size(std::size_t count, int ranks) {
  const std::size_t wanted = count / (static_cast<std::size_t>(ranks) * 4);
  return std::clamp<std::size_t>(wanted / kStrip * kStrip, kStrip, 32 * kStrip);
}

}  // namespace

void SharedCounter::raise(std::uint32_t value) {
  // Totally ordered with the sleeper's announcement and its check of the value: one sees the other.
  value_.store(value, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) futex_wake_all(value_);
}

void SharedCounter::wait_for(const Wait& wait, Communicator& communicator) {
  for (int i = 0; i < kSpins; ++i) {
    if (reached(wait.target)) return;
    relax();
  }
  const Backoff clock;
  for (std::int64_t slice = kShortestSlice;; slice = std::min(2 * slice, kLongestSlice)) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t seen = value_.load(std::memory_order_seq_cst);
    const bool there = static_cast<std::int32_t>(seen - wait.target) >= 0;
    if (!there) futex_wait(value_, seen, slice);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    if (there || reached(wait.target)) return;
    communicator.progress();
    communicator.check_peers();
    communicator.check_wait(wait.operation, wait.peer, wait.bytes, clock.waited());
  }
}

void NodeTeam::gather(const NodeJob& job) {
  ++round_;
  job_ = job;
  own().job = job;
  own().ready.raise(round_);
  wait_for_all(&NodeControl::ready, "hierarchical all-reduce (start)");
  for (int rank = 0; rank < memory_.local_size(); ++rank) check_job(rank);
  // For the next round, which nobody enters before this rank does.
  if (leads()) control(0).next_block[(round_ + 1) % 2].store(0, std::memory_order_relaxed);
}

void NodeTeam::reduce(std::span<float* const> sources, std::span<float* const> targets, std::size_t count,
                      float factor) {
  const std::size_t size = block_size(count, memory_.local_size());
  std::atomic<std::uint32_t>& next = control(0).next_block[round_ % 2];
  const bool idle = sources.size() == 1 && factor == 1.0f;
  while (!idle) {
    const std::size_t begin = size * next.fetch_add(1, std::memory_order_relaxed);
    if (begin >= count) break;
    reduce_block(sources, targets, {begin, std::min(begin + size, count)}, job_.reduction, factor);
  }
  own().reduced.raise(round_);
  wait_for_all(&NodeControl::reduced, "hierarchical all-reduce (sum)");
}

void NodeTeam::reduce_range(std::span<float* const> sources, float* target, std::size_t begin, std::size_t end,
                            float factor) {
  reduce_block(sources, {&target, 1}, {begin, end}, job_.reduction, factor);
  own().reduced.raise(round_);
  wait_for_all(&NodeControl::reduced, "hierarchical reduce-scatter");
}

void NodeTeam::finish_copy() {
  own().copied.raise(round_);
  wait_for_all(&NodeControl::copied, "hierarchical all-reduce (copy)");
}

void NodeTeam::wait(SharedCounter& counter, int local_rank, const char* operation) {
  counter.wait_for({.target = round_,
                    .operation = operation,
                    .peer = memory_.ranks()[local_rank],
                    .bytes = static_cast<std::int64_t>(job_.count * sizeof(float))},
                   communicator_);
}

void NodeTeam::wait_for_all(SharedCounter NodeControl::*counter, const char* operation) {
  for (int rank = 0; rank < memory_.local_size(); ++rank) wait(control(rank).*counter, rank, operation);
}

void NodeTeam::check_job(int local_rank) const {
  const NodeJob& theirs = control(local_rank).job;
  if (theirs == job_) return;
  fail(ErrorKind::failed,
       "all-reduce: rank {} has {} values at offset {}, but rank {} has {} at offset {} (-1: not in the arena); size, "
       "offset and reduction must be the same on all ranks",
       communicator_.rank(), job_.count, job_.offset, memory_.ranks()[local_rank], theirs.count, theirs.offset);
}

}  // namespace trireme::comm
