// Memory that the ranks of a node share: every rank brings a piece of the same size and sees the pieces of the others.
// Made by Communicator::share(); gradient arenas and the staging areas of the all-reduce lie in it. The pieces are
// unnamed files in memory (memfd), mapped through /proc: when the last process is gone so are they, whatever ended it.
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

  std::int64_t bytes() const { return bytes_; }  // of one piece
  // The ranks of this node count from 0 in the order of their ranks in the communicator.
  int local_rank() const { return local_rank_; }
  int local_size() const { return static_cast<int>(pieces_.size()); }
  std::span<const int> ranks() const { return ranks_; }  // in the communicator, by local rank

  std::byte* data(int local_rank) const { return pieces_[local_rank]; }
  std::byte* data() const { return data(local_rank_); }  // this rank's own piece
  // For those who will use the pieces of other ranks in every step. Only then: what is mapped counts as memory of this
  // process.
  void fill_page_tables() const;
  // Whether all of it lies in this rank's own piece.
  bool contains(std::span<const std::byte> memory) const;
  std::int64_t offset_of(const void* address) const { return static_cast<const std::byte*>(address) - data(); }

 private:
  friend class Communicator;
  SharedMemory() = default;

  std::int64_t bytes_ = 0;
  int local_rank_ = 0;
  std::vector<std::byte*> pieces_;
  std::vector<int> ranks_;
};

}  // namespace trireme::comm
