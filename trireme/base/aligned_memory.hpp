// Zeroed memory aligned for vectors and huge pages, owned. Arenas, constants and variables live in it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trireme {

// Lets the C library keep what is freed instead of giving it back to the system: libraries allocate buffers in every
// step, and pages that come back have to be cleared and mapped again each time. For programs, called once in main().
void keep_freed_memory();

class AlignedMemory {
 public:
  AlignedMemory() = default;
  explicit AlignedMemory(std::int64_t bytes);
  ~AlignedMemory();
  AlignedMemory(AlignedMemory&& other) noexcept;
  AlignedMemory& operator=(AlignedMemory&& other) noexcept;
  AlignedMemory(const AlignedMemory&) = delete;
  AlignedMemory& operator=(const AlignedMemory&) = delete;

  std::int64_t bytes() const { return bytes_; }
  void* at(std::int64_t offset) const { return static_cast<std::byte*>(data_) + offset; }

 private:
  void* mapped_ = nullptr;  // what the system gave
  std::size_t mapped_bytes_ = 0;
  void* data_ = nullptr;  // the aligned part of it
  std::int64_t bytes_ = 0;
};

}  // namespace trireme
