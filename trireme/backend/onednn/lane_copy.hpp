// Copies some channels between two tensors in blocked layout where the copy begins inside a block: what BoxCopy cannot
// do. Both have the same batch, positions and lanes; one has the channels of the other from a given one on. Element is
// float or BFloat16.
#pragma once

#include <vector>

#include "trireme/backend/onednn/channel_view.hpp"

namespace trireme::onednn {

class LaneCopy {
 public:
  // part's channels are whole's channels from begin on.
  LaneCopy(const ChannelView& whole, const ChannelView& part, std::int64_t begin);

  // Both share the work among the threads of the OpenMP region they are called in, and do not wait for them.
  template <typename Element>
  void to_whole(const Element* part, Element* whole) const;
  template <typename Element>
  void to_part(const Element* whole, Element* part) const;

 private:
  // Neighbouring lanes that lie in one block on both sides.
  struct Run {
    std::int64_t whole_block, whole_lane, part_block, part_lane, length;
  };
  ChannelView whole_, part_;
  std::vector<Run> runs_;
};

// Zeroes the lanes behind the last channel; shared among threads as above.
template <typename Element>
void clear_padding(const ChannelView& view, Element* data);

}  // namespace trireme::onednn
