#include "trireme/base/aligned_memory.hpp"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"

namespace trireme {

void keep_freed_memory() {
  mallopt(M_ARENA_MAX, 1);              // per-thread arenas shrink whatever is set
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the maximum allowed
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

void discard_pages(std::span<std::byte> memory) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* begin = memory.data();
  std::size_t bytes = memory.size();
  if (std::align(page, page, begin, bytes) != nullptr) madvise(begin, bytes / page * page, MADV_DONTNEED);
}

AlignedMemory::AlignedMemory(std::int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  // mmap aligns to small pages only: map more and start at a multiple of the huge page size.
  constexpr std::int64_t kHugePage = 2 << 20;
  mapped_bytes_ = static_cast<std::size_t>(bytes < kHugePage ? bytes : bytes + kHugePage);
  // Anonymous pages are zeroed, and untouched ones cost nothing.
  mapped_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped_ == MAP_FAILED) {
    mapped_ = nullptr;
    fail(ErrorKind::failed, "cannot allocate {} of memory: {}; try a smaller --batch-size",
         format_bytes(static_cast<double>(bytes)), std::strerror(errno));
  }
  data_ = mapped_;
  if (bytes >= kHugePage) {
    std::size_t space = mapped_bytes_;
    data_ = std::align(kHugePage, bytes, data_, space);
    madvise(data_, bytes, MADV_HUGEPAGE);  // advice: its failure is not an error
  }
}

AlignedMemory::~AlignedMemory() {
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
}

AlignedMemory::AlignedMemory(AlignedMemory&& other) noexcept { *this = std::move(other); }

AlignedMemory& AlignedMemory::operator=(AlignedMemory&& other) noexcept {
  std::swap(mapped_, other.mapped_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace trireme
