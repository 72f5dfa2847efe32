// Which positions in the sequence of samples have been used, by updates that all workers make together, a batch each
// per run. The batches of workers that are lost before they contribute come first in the next update. All workers keep
// the same one; made by Worker.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trireme/data/sample_order.hpp"

namespace trireme::train {

class SampleLedger {
 public:
  SampleLedger() = default;
  SampleLedger(std::int64_t next, std::vector<data::PositionRange> leftover)
      : next_(next), leftover_(std::move(leftover)) {}

  // An update of this many runs, in each of which every worker takes a batch, in order of ranks. The ones listed, by
  // rank, have not contributed.
  struct Update {
    std::int64_t batch = 1;
    int workers = 1, runs = 1;
  };
  void commit(const Update& update, std::span<const int> lost = {});

  std::int64_t next() const { return next_; }  // all positions from here on are unused
  // Earlier unused positions, ascending.
  const std::vector<data::PositionRange>& leftover() const { return leftover_; }
  std::int64_t used() const;         // number of positions
  std::int64_t done_before() const;  // all positions before it are used

 private:
  std::int64_t next_ = 0;
  std::vector<data::PositionRange> leftover_;
};

}  // namespace trireme::train
