#include <algorithm>
#include <cstring>

#include "trireme/backend/onednn/channel_view.hpp"
#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/onednn/own_kernel.hpp"
#include "trireme/base/simd.hpp"

namespace trireme::onednn {
namespace {

std::int64_t block_size(const Layout& layout, int axis) {
  std::int64_t size = 1;
  for (const auto& block : layout.blocks) {
    if (block.axis == axis) size *= block.size;
  }
  return size;
}

// A box of a tensor's memory as row-major axes: the outer parts of its axes in the layout's order, then its blocks.
struct PhysicalBox {
  std::vector<std::int64_t> extents, strides;
  std::int64_t first = 0;  // elements before the box

  // The box of this size from `begin` on; nothing if it cuts a block (it may end inside the last one).
  static std::optional<PhysicalBox> make(const Shape& shape, const Layout& layout,
                                         const std::vector<std::int64_t>& begin,
                                         const std::vector<std::int64_t>& size) {
    PhysicalBox box;
    std::vector<std::int64_t> whole, start;
    for (int axis : layout.order) {
      const std::int64_t block = block_size(layout, axis), end = begin[axis] + size[axis];
      if (begin[axis] % block != 0 || (end % block != 0 && end != shape[axis])) return std::nullopt;
      whole.push_back((shape[axis] + block - 1) / block);
      start.push_back(begin[axis] / block);
      box.extents.push_back((size[axis] + block - 1) / block);
    }
    for (const auto& block : layout.blocks) {
      whole.push_back(block.size);
      start.push_back(0);
      box.extents.push_back(block.size);
    }
    box.strides.assign(whole.size(), 1);
    for (std::size_t i = whole.size(); i-- > 1;) box.strides[i - 1] = box.strides[i] * whole[i];
    for (std::size_t i = 0; i < whole.size(); ++i) box.first += start[i] * box.strides[i];
    return box;
  }
  static PhysicalBox whole(const Shape& shape, const Layout& layout) {
    return *make(shape, layout, std::vector<std::int64_t>(shape.rank(), 0), shape.dims());
  }
};

// Copies a box of elements between two tensors of one layout; both boxes have the same extents. run() shares the rows
// among the threads of the calling OpenMP region, without a barrier.
class BoxCopy {
 public:
  BoxCopy(const PhysicalBox& from, const PhysicalBox& to, std::int64_t element_bytes)
      : extents_(from.extents),
        from_strides_(from.strides),
        to_strides_(to.strides),
        from_first_(from.first),
        to_first_(to.first),
        element_bytes_(element_bytes) {
    while (!extents_.empty() && from_strides_.back() == run_ && to_strides_.back() == run_) {
      run_ *= extents_.back();
      extents_.pop_back();
      from_strides_.pop_back();
      to_strides_.pop_back();
    }
    for (std::int64_t extent : extents_) rows_ *= extent;
  }

  void run(const void* src, void* dst) const {
    const auto* source = static_cast<const std::byte*>(src);
    auto* destination = static_cast<std::byte*>(dst);
#pragma omp for schedule(static) nowait
    for (std::int64_t row = 0; row < rows_; ++row) {
      std::int64_t from = from_first_, to = to_first_, rest = row;
      for (std::size_t i = extents_.size(); i-- > 0;) {
        from += rest % extents_[i] * from_strides_[i];
        to += rest % extents_[i] * to_strides_[i];
        rest /= extents_[i];
      }
      std::memcpy(destination + to * element_bytes_, source + from * element_bytes_, run_ * element_bytes_);
    }
  }

 private:
  std::vector<std::int64_t> extents_, from_strides_, to_strides_;  // of the axes outside a contiguous run
  std::int64_t from_first_, to_first_, element_bytes_, rows_ = 1, run_ = 1;
};

template <typename Element>
TRIREME_INLINE void copy_lanes_of(const Element* src, Element* dst, std::int64_t positions, std::int64_t lanes,
                                  std::int64_t length) {
  for (std::int64_t position = 0; position < positions; ++position) {
    for (std::int64_t i = 0; i < length; ++i) dst[position * lanes + i] = src[position * lanes + i];
  }
}

TRIREME_SIMD void copy_lanes(const float* src, float* dst, std::int64_t positions, std::int64_t lanes,
                             std::int64_t length) {
  copy_lanes_of(src, dst, positions, lanes, length);
}
TRIREME_SIMD void copy_lanes(const BFloat16* src, BFloat16* dst, std::int64_t positions, std::int64_t lanes,
                             std::int64_t length) {
  copy_lanes_of(src, dst, positions, lanes, length);
}

// Copies channels between blocked tensors if the copy begins inside a block, which BoxCopy cannot do. Both tensors have
// the same batch, positions and lanes; part's channels are whole's from `begin` on. Work is shared as in BoxCopy.
class LaneCopy {
 public:
  LaneCopy(const ChannelView& whole, const ChannelView& part, std::int64_t begin) : whole_(whole), part_(part) {
    const std::int64_t lanes = whole.lanes;
    for (std::int64_t c = 0; c < part.channels;) {
      const std::int64_t length = std::min({lanes - c % lanes, lanes - (begin + c) % lanes, part.channels - c});
      runs_.push_back({.whole_block = (begin + c) / lanes,
                       .whole_lane = (begin + c) % lanes,
                       .part_block = c / lanes,
                       .part_lane = c % lanes,
                       .length = length});
      c += length;
    }
  }

  template <typename Element>
  void to_whole(const Element* part, Element* whole) const {
    for_each_run([&](std::int64_t in_whole, std::int64_t in_part, std::int64_t length) {
      copy_lanes(part + in_part, whole + in_whole, whole_.positions, whole_.lanes, length);
    });
  }
  template <typename Element>
  void to_part(const Element* whole, Element* part) const {
    for_each_run([&](std::int64_t in_whole, std::int64_t in_part, std::int64_t length) {
      copy_lanes(whole + in_whole, part + in_part, whole_.positions, whole_.lanes, length);
    });
  }

 private:
  // Neighboring lanes that are in one block on both sides.
  struct Run {
    std::int64_t whole_block, whole_lane, part_block, part_lane, length;
  };

  template <typename Body>
  void for_each_run(Body body) const {
#pragma omp for collapse(2) schedule(static) nowait
    for (std::int64_t n = 0; n < whole_.batch; ++n) {
      for (std::size_t i = 0; i < runs_.size(); ++i) {
        const Run& run = runs_[i];
        body(whole_.offset(n, run.whole_block) + run.whole_lane, part_.offset(n, run.part_block) + run.part_lane,
             run.length);
      }
    }
  }

  ChannelView whole_, part_;
  std::vector<Run> runs_;
};

// Zeroes the lanes after the last channel; work is shared as above.
template <typename Element>
void clear_padding(const ChannelView& view, Element* data) {
  if (!view.padded()) return;
  const std::int64_t real = view.channels % view.lanes;
#pragma omp for schedule(static) nowait
  for (std::int64_t n = 0; n < view.batch; ++n) {
    Element* block = data + view.offset(n, view.blocks - 1);
    for (std::int64_t position = 0; position < view.positions; ++position, block += view.lanes) {
      std::fill(block + real, block + view.lanes, Element{});
    }
  }
}

template <typename Element>
void fill(Element* values, std::int64_t elements, Element value) {
#pragma omp for schedule(static)
  for (std::int64_t i = 0; i < elements; ++i) values[i] = value;
}

// Boxes of a tensor that are tensors themselves: concat and pad put them into the whole, split and slice take them out.
struct Parts {
  Shape whole;
  std::vector<Shape> shapes = {};
  std::vector<std::vector<std::int64_t>> begins = {};  // position in the whole
  bool put = true;                                     // into the whole; else out of it
  std::optional<float> fill = {};                      // for what no part covers

  // After the existing parts.
  void append(const Shape& shape, int axis) {
    std::vector<std::int64_t> begin(whole.rank(), 0);
    for (const Shape& before : shapes) begin[axis] += before[axis];
    shapes.push_back(shape);
    begins.push_back(std::move(begin));
  }
  std::int64_t elements() const {
    std::int64_t sum = 0;
    for (const Shape& shape : shapes) sum += shape.elements();
    return put ? whole.elements() : sum;
  }
  // Whether writing `fill` everywhere would also hit lanes that must stay zero.
  bool fills_padding(const Layout& layout) const {
    return fill.value_or(0) != 0 && layout.elements(whole) != whole.elements();
  }
  // Whether the parts differ from the whole only on axis 1, which the layout blocks.
  bool are_channels(const Layout& layout) const {
    for (const Shape& shape : shapes) {
      for (int axis = 0; axis < whole.rank(); ++axis) {
        if (axis != 1 && shape[axis] != whole[axis]) return false;
      }
    }
    return !layout.blocks.empty() && channel_view(whole, layout);
  }
  // Nothing if a part begins or ends inside a block.
  std::optional<std::vector<PhysicalBox>> boxes(const Layout& layout) const {
    std::vector<PhysicalBox> result;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const auto box = PhysicalBox::make(whole, layout, begins[i], shapes[i].dims());
      if (!box) return std::nullopt;
      result.push_back(*box);
    }
    return result;
  }
};

template <typename Element>
KernelChoice copy_boxes(const KernelRequest& request, const Parts& parts, const Format& format,
                        const std::vector<PhysicalBox>& boxes) {
  std::vector<BoxCopy> copies;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const PhysicalBox part = PhysicalBox::whole(parts.shapes[i], format.layout);
    copies.emplace_back(parts.put ? part : boxes[i], parts.put ? boxes[i] : part, size_of(format.dtype));
  }
  const std::int64_t elements = parts.elements(), filled = format.layout.elements(parts.whole);
  return own_kernel(request, [=, put = parts.put, value = parts.fill](const Operands& operands, const RunContext&) {
#pragma omp parallel if (elements > kParallelElements)
    {
      if (value) fill(operands.output<Element>(), filled, Element(*value));
      for (std::size_t i = 0; i < copies.size(); ++i)
        copies[i].run(operands.input(put ? i : 0), operands.output(put ? 0 : i));
    }
  });
}

// For blocked channels with parts that begin inside a block.
template <typename Element>
KernelChoice copy_channels(const KernelRequest& request, const Parts& parts, const Layout& layout) {
  const ChannelView whole = *channel_view(parts.whole, layout);
  std::vector<ChannelView> views;
  std::vector<LaneCopy> copies;
  for (std::size_t i = 0; i < parts.shapes.size(); ++i) {
    views.push_back(*channel_view(parts.shapes[i], layout));
    copies.emplace_back(whole, views[i], parts.begins[i][1]);
  }
  const std::int64_t elements = parts.elements();
  return own_kernel(request, [=, put = parts.put, value = parts.fill](const Operands& operands, const RunContext&) {
#pragma omp parallel if (elements > kParallelElements)
    {
      if (value) fill(operands.output<Element>(), whole.elements(), Element(*value));
      for (std::size_t i = 0; i < copies.size(); ++i) {
        if (put) {
          copies[i].to_whole(operands.input<Element>(i), operands.output<Element>());
        } else {
          copies[i].to_part(operands.input<Element>(0), operands.output<Element>(i));
          clear_padding(views[i], operands.output<Element>(i));
        }
      }
      if (put) clear_padding(whole, operands.output<Element>());
    }
  });
}

KernelChoice copy_parts(const KernelRequest& request, const Parts& parts) {
  Layout layout = common_layout(request.inputs);
  const DataType type = common_type(request.inputs);
  const bool usable = !parts.fills_padding(layout);
  auto boxes = parts.boxes(layout);
  const bool by_channels = !boxes && usable && parts.are_channels(layout);
  if (!by_channels && (!boxes || !usable)) {
    layout = Layout::plain(parts.whole.rank());
    boxes = parts.boxes(layout);
  }
  KernelChoice choice = with_element(type, [&]<typename Element>(Element) {
    return by_channels ? copy_channels<Element>(request, parts, layout)
                       : copy_boxes<Element>(request, parts, {layout, type}, *boxes);
  });
  for (Format& input : choice.inputs) input = {layout, type};
  for (Format& output : choice.outputs) output = {layout, type};
  return choice;
}

}  // namespace

KernelChoice make(const op::Concat& operation, const KernelRequest& request, const dnnl::engine&) {
  Parts parts{.whole = request.node.outputs[0].shape};
  for (const TensorDesc& input : request.inputs) parts.append(input.shape, operation.axis);
  return copy_parts(request, parts);
}

KernelChoice make(const op::Split& operation, const KernelRequest& request, const dnnl::engine&) {
  Parts parts{.whole = request.inputs[0].shape, .put = false};
  for (const TensorType& output : request.node.outputs) parts.append(output.shape, operation.axis);
  return copy_parts(request, parts);
}

KernelChoice make(const op::Pad& operation, const KernelRequest& request, const dnnl::engine&) {
  return copy_parts(request, {.whole = request.node.outputs[0].shape,
                              .shapes = {request.inputs[0].shape},
                              .begins = {operation.before},
                              .fill = operation.value});
}

KernelChoice make(const op::Slice& operation, const KernelRequest& request, const dnnl::engine&) {
  return copy_parts(request, {.whole = request.inputs[0].shape,
                              .shapes = {request.node.outputs[0].shape},
                              .begins = {operation.begin},
                              .put = false});
}

KernelChoice make(const op::Reshape&, const KernelRequest& request, const dnnl::engine&) {
  const TensorDesc& src = request.inputs[0];
  const std::int64_t bytes = src.shape.elements() * size_of(src.dtype);
  KernelChoice choice = own_kernel(request, [bytes](const Operands& operands, const RunContext&) {
    const auto* from = operands.input<std::byte>(0);
    auto* to = operands.output<std::byte>();
    if (from == to) return;
    constexpr std::int64_t kRun = 16384;
#pragma omp parallel for schedule(static) if (bytes > 4 * kParallelElements)
    for (std::int64_t begin = 0; begin < bytes; begin += kRun)
      std::memcpy(to + begin, from + begin, std::min(kRun, bytes - begin));
  });
  choice.inputs[0].dtype = choice.outputs[0].dtype = src.dtype;
  choice.in_place = {{0, 0}};
  return choice;
}

}  // namespace trireme::onednn
