// Copies some channels between two tensors in blocked layout where the copy begins inside a block: what BoxCopy cannot
// do. Both have the same batch, positions and lanes; one has the channels of the other from a given one on.
#pragma once

#include <vector>

#include "trireme/backend/onednn/channel_view.hpp"

namespace trireme::onednn {

class LaneCopy {
 public:
  // part's channels are whole's channels from begin on.
  LaneCopy(const ChannelView& whole, const ChannelView& part, std::int64_t begin);

  // Both share the work among the threads of the OpenMP region they are called in, and do not wait for them.
  void to_whole(const float* part, float* whole) const;
  void to_part(const float* whole, float* part) const;

 private:
  // Neighbouring lanes that lie in one block on both sides.
  struct Run {
    std::int64_t whole_block, whole_lane, part_block, part_lane, length;
  };
  ChannelView whole_, part_;
  std::vector<Run> runs_;
};

// Zeroes the lanes behind the last channel; shared among threads as above.
void clear_padding(const ChannelView& view, float* data);

}  // namespace trireme::onednn
