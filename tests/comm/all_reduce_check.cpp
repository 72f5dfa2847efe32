#include "all_reduce_check.hpp"

#include <algorithm>
#include <cmath>

#include "suite_check.hpp"
#include "trireme/base/error.hpp"
#include "trireme/comm/collectives.hpp"

namespace trireme::comm::testkit {
namespace {

constexpr std::size_t kGuard = 16;
constexpr float kGuardValue = 12345.0f;

// Different for every rank and place, with fractions that do not add up exactly.
float contribution(int rank, std::size_t index) {
  return static_cast<float>((index * 7 + static_cast<std::size_t>(rank) * 13) % 101) * 0.02f - 0.9f;
}

double expected(int ranks, std::size_t index, Reduction reduction) {
  double sum = 0;
  double largest = contribution(0, index);
  for (int rank = 0; rank < ranks; ++rank) {
    sum += contribution(rank, index);
    largest = std::max<double>(largest, contribution(rank, index));
  }
  if (reduction == Reduction::max) return largest;
  return reduction == Reduction::mean ? sum / ranks : sum;
}

// Half a unit in the last place of each partial sum, of which there are as many as ranks and none above it in size.
double tolerance(Wire wire, int ranks, Reduction reduction) {
  const double unit = wire == Wire::fp32 ? 0x1p-23 : wire == Wire::fp16 ? 0x1p-10 : 0x1p-7;
  const double largest = 1.1 * ranks;
  return unit * ranks * largest / (reduction == Reduction::mean ? ranks : 1);
}

void check_values(std::span<const float> values, const Communicator& communicator, Reduction reduction, Wire wire) {
  const double allowed = tolerance(wire, communicator.size(), reduction);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double right = expected(communicator.size(), i, reduction);
    if (std::abs(values[i] - right) <= allowed) continue;
    fail(ErrorKind::failed, "value {} of {} is {}, not {}, with {} ranks and reduction {}", i, values.size(), values[i],
         right, communicator.size(), static_cast<int>(reduction));
  }
}

std::uint64_t hash_bits(std::span<const float> values) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const std::byte byte : std::as_bytes(values)) hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211u;
  return hash;
}

}  // namespace

void check_all_reduce(AllReducer& reducer, std::size_t count, Reduction reduction, Wire wire,
                      const SharedMemory* arena) {
  Communicator& communicator = reducer.communicator();
  std::vector<float> alone(count + 2 * kGuard);
  const std::span<float> all =
      arena == nullptr ? std::span(alone) : std::span(reinterpret_cast<float*>(arena->data()), alone.size());
  std::fill(all.begin(), all.end(), kGuardValue);
  const std::span<float> values = all.subspan(kGuard, count);
  for (std::size_t i = 0; i < count; ++i) values[i] = contribution(communicator.rank(), i);

  barrier(communicator);  // nobody writes into an arena that others may still be checking
  reducer.reduce(values, reduction);
  check_values(values, communicator, reduction, wire);
  for (std::size_t i = 0; i < kGuard; ++i) {
    expect(all[i] == kGuardValue && all[kGuard + count + i] == kGuardValue, "values around the range are left alone");
  }
  const auto hashes = all_gather_value(communicator, hash_bits(values));
  expect(std::count(hashes.begin(), hashes.end(), hashes[0]) == communicator.size(), "all ranks have the same bits");

  // In two halves, with the others' slices spoilt in between.
  const std::vector<float> reduced(values.begin(), values.end());
  for (std::size_t i = 0; i < count; ++i) values[i] = contribution(communicator.rank(), i);
  barrier(communicator);
  reducer.reduce_scatter(values, reduction);
  const std::span<float> slice = slice_of(values, communicator.size(), communicator.rank());
  const std::vector<float> own(slice.begin(), slice.end());
  std::ranges::fill(values, kGuardValue);
  std::ranges::copy(own, slice.begin());
  reducer.all_gather(values);
  expect(std::ranges::equal(values, reduced), "the halves of an all-reduce give the same bits as the whole");
  expect(all[kGuard - 1] == kGuardValue && all[kGuard + count] == kGuardValue, "the halves change nothing else");
}

void check_all_reduce(Communicator& communicator, const AllReduceOptions& options,
                      const std::vector<std::size_t>& sizes, bool in_arena) {
  const std::size_t largest = *std::max_element(sizes.begin(), sizes.end()) + 2 * kGuard;
  const auto arena = in_arena ? communicator.share(static_cast<std::int64_t>(largest * sizeof(float))) : nullptr;
  expect(!in_arena || arena != nullptr, "memory can be shared");
  AllReducer reducer(communicator, options, arena.get());
  for (const Reduction reduction : {Reduction::sum, Reduction::mean, Reduction::max}) {
    for (const std::size_t count : sizes) check_all_reduce(reducer, count, reduction, options.wire, arena.get());
  }
  barrier(communicator);
}

std::vector<std::size_t> awkward_sizes(std::int64_t piece_bytes) {
  const auto piece = static_cast<std::size_t>(piece_bytes) / sizeof(float);
  return {0, 1, 2, 5, 17, 1000, piece - 1, piece + 1, 7 * piece + 3, 40 * piece, 1100 * piece + 1};
}

}  // namespace trireme::comm::testkit
