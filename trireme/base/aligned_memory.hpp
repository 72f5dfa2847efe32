// Owned, zeroed memory aligned for vectors and huge pages: arenas, constants and variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace trireme {

// Makes the C library keep freed memory: libraries allocate buffers in every step, and returned pages would have to be
// cleared and mapped again each time. Programs call it once in main().
void keep_freed_memory();

// Gives whole pages within this part of an AlignedMemory back to the system; they are then zero.
void discard_pages(std::span<std::byte> memory);

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
  void* mapped_ = nullptr;  // as mapped
  std::size_t mapped_bytes_ = 0;
  void* data_ = nullptr;  // its aligned part
  std::int64_t bytes_ = 0;
};

}  // namespace trireme
