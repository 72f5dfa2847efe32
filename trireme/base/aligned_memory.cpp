#include "trireme/base/aligned_memory.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "trireme/base/error.hpp"

namespace trireme {

AlignedMemory::AlignedMemory(std::int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  // Anonymous pages come zeroed, and untouched ones cost nothing.
  data_ = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    fail(ErrorKind::failed, "cannot get {:.2f} GB of memory: {}; a smaller --batch-size needs less", static_cast<double>(bytes) / 1e9,
         std::strerror(errno));
  }
  constexpr std::int64_t kHugePage = 2 << 20;
  if (bytes >= kHugePage) madvise(data_, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // advice: its failure is no error
}

AlignedMemory::~AlignedMemory() {
  if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(bytes_));
}

AlignedMemory::AlignedMemory(AlignedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

AlignedMemory& AlignedMemory::operator=(AlignedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace trireme
