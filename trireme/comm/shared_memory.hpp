// Memory shared by the ranks of a node: each contributes a piece of equal size and sees all pieces. Made by
// Communicator::share(); holds gradient arenas and all-reduce staging areas. The pieces are unnamed in-memory files
// (memfd) mapped through /proc, so they vanish with the last process, however it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace trireme::comm {

class SharedMemory {
 public:
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Local ranks number the ranks of this node from 0, in communicator order.
  int local_rank() const { return local_rank_; }
  int local_size() const { return static_cast<int>(pieces_.size()); }
  std::span<const int> ranks() const { return ranks_; }  // in the communicator, by local rank

  std::byte* data(int local_rank) const { return pieces_[local_rank]; }
  std::byte* data() const { return data(local_rank_); }  // this rank's own piece
  // Call only if pieces of other ranks are used in every step: mapped pages count as this process's memory.
  void fill_page_tables() const;
  bool contains(std::span<const std::byte> memory) const;  // whether all of it is in this rank's own piece
  std::int64_t offset_of(const void* address) const { return static_cast<const std::byte*>(address) - data(); }

 private:
  friend class Communicator;
  SharedMemory() = default;

  std::int64_t bytes_ = 0;  // of one piece
  int local_rank_ = 0;
  std::vector<std::byte*> pieces_;
  std::vector<int> ranks_;
};

}  // namespace trireme::comm
