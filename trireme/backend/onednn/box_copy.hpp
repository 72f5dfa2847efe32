// Copies a box of elements between two tensors of one layout: what concat, split, pad and slice are made of. The
// layout's blocks are axes like others here, so a box may cut any axis that is not blocked, and a blocked one between
// blocks.
#pragma once

#include <optional>
#include <vector>

#include "trireme/plan/layout.hpp"

namespace trireme::onednn {

// A tensor's memory as row-major axes: the outer parts of its axes in the layout's order, then the blocks.
class PhysicalBox {
 public:
  // The box of the given size that begins at begin; nothing where it cuts a block (it may end inside the last one).
  static std::optional<PhysicalBox> make(const Shape& shape, const Layout& layout,
                                         const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& size);
  // The whole tensor.
  PhysicalBox(const Shape& shape, const Layout& layout);

  const std::vector<std::int64_t>& extents() const { return extents_; }
  const std::vector<std::int64_t>& strides() const { return strides_; }
  std::int64_t first() const { return first_; }

 private:
  PhysicalBox() = default;
  std::vector<std::int64_t> extents_, strides_;
  std::int64_t first_ = 0;  // elements before the box
};

// Boxes of equal extents and elements of so many bytes, prepared when the kernel is chosen. run() shares the rows among
// the threads of the OpenMP region it is called in, and does not wait for them.
class BoxCopy {
 public:
  BoxCopy(const PhysicalBox& from, const PhysicalBox& to, std::int64_t element_bytes);
  std::int64_t elements() const { return rows_ * run_; }
  void run(const void* src, void* dst) const;

 private:
  std::vector<std::int64_t> extents_, from_strides_, to_strides_;  // of the axes outside of a contiguous run
  std::int64_t from_first_, to_first_, element_bytes_, rows_ = 1, run_ = 1;
};

}  // namespace trireme::onednn
