#include "trireme/comm/shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "trireme/base/error.hpp"
#include "trireme/base/unique_fd.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/communicator.hpp"

namespace trireme::comm {
namespace {

// Allocates all pages, so that a lack of memory shows here and not as a signal at first touch.
UniqueFd make_memory_file(std::int64_t bytes) {
  UniqueFd file(memfd_create("trireme", MFD_CLOEXEC));
  if (file.is_open() && fallocate(file.get(), 0, 0, bytes) != 0) file.reset();
  return file;
}

std::byte* map_file(const UniqueFd& file, std::int64_t bytes, bool is_own) {
  if (!file.is_open()) return nullptr;
  const int flags = is_own ? MAP_SHARED | MAP_POPULATE : MAP_SHARED;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file.get(), 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

// For a rank alone on its node: only private memory can have huge pages.
std::byte* map_private(std::int64_t bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  madvise(mapped, bytes, MADV_HUGEPAGE);  // advice: its failure is not an error
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  for (std::int64_t at = 0; at < bytes; at += page) static_cast<volatile char*>(mapped)[at] = 0;
  return static_cast<std::byte*>(mapped);
}

struct Announcement {
  std::int64_t pid = 0;
  std::int64_t bytes = 0;
  int file = -1;  // descriptor in that process; -1: refused
};

void check_sizes(const std::vector<Announcement>& announcements, std::int64_t bytes) {
  for (std::size_t rank = 0; rank < announcements.size(); ++rank) {
    if (announcements[rank].bytes == bytes) continue;
    bad_input("shared memory: rank {} asks for {} bytes and this rank for {}; they must be equal", rank,
              announcements[rank].bytes, bytes);
  }
}

bool all_true(Communicator& communicator, bool mine) {
  const auto all = all_gather_value(communicator, static_cast<char>(mine ? 1 : 0));
  return std::find(all.begin(), all.end(), 0) == all.end();
}

}  // namespace

SharedMemory::~SharedMemory() {
  for (std::byte* piece : pieces_) {
    if (piece != nullptr) munmap(piece, bytes_);
  }
}

void SharedMemory::fill_page_tables() const {
  for (std::byte* piece : pieces_) {
    madvise(piece, bytes_, MADV_POPULATE_WRITE);  // older kernels do it at first touch
  }
}

bool SharedMemory::contains(std::span<const std::byte> memory) const {
  return memory.data() >= data() && memory.data() + memory.size() <= data() + bytes_;
}

std::unique_ptr<SharedMemory> Communicator::share(std::int64_t bytes) {
  if (bytes <= 0) bad_input("shared memory of {} bytes: at least 1 is needed", bytes);
  std::unique_ptr<SharedMemory> memory(new SharedMemory);
  memory->bytes_ = bytes;
  for (int rank = 0; rank < size_; ++rank) {
    if (members_[rank].node != self().node) continue;
    if (rank == rank_) memory->local_rank_ = static_cast<int>(memory->ranks_.size());
    memory->ranks_.push_back(rank);
  }
  const bool alone = memory->ranks_.size() == 1;
  memory->pieces_.assign(memory->ranks_.size(), nullptr);

  const UniqueFd own = alone ? UniqueFd() : make_memory_file(bytes);
  const Announcement announcement{self().pid, bytes, own.get()};
  const auto announcements = all_gather_value(*this, announcement);
  check_sizes(announcements, bytes);

  bool mapped = true;
  for (std::size_t i = 0; i < memory->ranks_.size() && mapped; ++i) {
    if (alone) {
      memory->pieces_[i] = map_private(bytes);
    } else {
      const Announcement& other = announcements[memory->ranks_[i]];
      // Opens its own piece by path too, to find out early if access is denied.
      const UniqueFd file(
          other.file < 0 ? -1 : open(fmt::format("/proc/{}/fd/{}", other.pid, other.file).c_str(), O_RDWR | O_CLOEXEC));
      memory->pieces_[i] = map_file(file, bytes, static_cast<int>(i) == memory->local_rank_);
    }
    mapped = memory->pieces_[i] != nullptr;
  }
  // Also keeps every file open until all have mapped it.
  return all_true(*this, mapped) ? std::move(memory) : nullptr;
}

}  // namespace trireme::comm
