#include "trireme/backend/cuda/check.hpp"
#include "trireme/backend/cuda/strided.cuh"
#include "trireme/backend/cuda/structure_kernels.hpp"

namespace trireme::cuda {
namespace {

// function(Unit{}) with a type of this many bytes.
template <typename Function>
void with_unit(std::int64_t bytes, Function function) {
  if (bytes == 16) {
    function(uint4{});
  } else if (bytes == 4) {
    function(std::uint32_t{});
  } else {
    function(std::uint16_t{});
  }
}

// One unit per thread, in the order of the whole tensor.
template <typename Unit, bool kConcat>
__global__ void join_kernel(const __grid_constant__ Join join, const __grid_constant__ JoinMemory memory) {
  const std::uint32_t position = thread_position();
  if (position >= join.positions) return;
  const std::uint32_t row = quotient(position, join.columns);
  const std::uint32_t column = position - row * join.columns.divisor;
  int part = 0;
  while (column >= join.begins[part + 1]) ++part;
  const std::uint32_t begin = join.begins[part], run = join.begins[part + 1] - begin;
  Unit* const whole = static_cast<Unit*>(memory.whole) + row * join.whole_row + join.whole_first + column;
  Unit* const own = static_cast<Unit*>(memory.parts[part]) + static_cast<std::int64_t>(row) * run + (column - begin);
  if constexpr (kConcat) {
    *whole = *own;
  } else {
    *own = *whole;
  }
}

template <bool kConcat>
void launch_join(cudaStream_t stream, const Join& join, const JoinMemory& memory) {
  with_unit(join.unit_bytes, [&]<typename Unit>(Unit) {
    join_kernel<Unit, kConcat><<<blocks_of_threads(join.positions), kThreads, 0, stream>>>(join, memory);
  });
}

template <typename Unit>
__global__ void box_move_kernel(const __grid_constant__ BoxMove move, const Unit* src, Unit* dst) {
  const std::uint32_t position = thread_position();
  if (position >= move.walk.positions) return;
  const Offsets<2> offsets = offsets_at(move.walk, position);
  dst[move.dst_first + offsets.of[1]] = src[move.src_first + offsets.of[0]];
}

template <typename Element>
__global__ void fill_kernel(std::int64_t elements, float value, Element* dst) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < elements) dst[i] = from_float<Element>(value);
}

}  // namespace

void launch_concat(cudaStream_t stream, const Join& join, const JoinMemory& memory) {
  launch_join<true>(stream, join, memory);
  check(cudaGetLastError(), "a concatenation");
}

void launch_split(cudaStream_t stream, const Join& join, const JoinMemory& memory) {
  launch_join<false>(stream, join, memory);
  check(cudaGetLastError(), "a split");
}

void launch_box_move(cudaStream_t stream, const BoxMove& move, const void* src, void* dst) {
  with_unit(move.unit_bytes, [&]<typename Unit>(Unit) {
    box_move_kernel<<<blocks_of_threads(move.walk.positions), kThreads, 0, stream>>>(
        move, static_cast<const Unit*>(src), static_cast<Unit*>(dst));
  });
  check(cudaGetLastError(), "a copy of a part of a tensor");
}

void launch_fill(cudaStream_t stream, DataType type, std::int64_t elements, float value, void* dst) {
  with_element(type, [&]<typename Element>(Element) {
    fill_kernel<<<blocks_of_threads(elements), kThreads, 0, stream>>>(elements, value, static_cast<Element*>(dst));
  });
  check(cudaGetLastError(), "filling a tensor");
}

}  // namespace trireme::cuda
