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

// A box of a tensor's memory as row-major axes: the outer parts of its axes in the layout's order, then the blocks,
// which are axes like others here.
struct PhysicalBox {
  std::vector<std::int64_t> extents, strides;
  std::int64_t first = 0;  // elements before the box

  // The box of the given size that begins at begin; nothing if it cuts a block (it may end inside the last one).
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

// Copies a box of elements of so many bytes between two tensors of one layout; the boxes have equal extents. run()
// shares the rows among the threads of the OpenMP region it is called in, and does not wait for them.
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
  std::int64_t elements() const { return rows_ * run_; }

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
  std::vector<std::int64_t> extents_, from_strides_, to_strides_;  // of the axes outside of a contiguous run
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

// Copies channels between two tensors in blocked layout where the copy begins inside a block, which BoxCopy cannot do.
// Both have the same batch, positions and lanes; part's channels are whole's channels from begin on. The copies share
// the work among the threads of the OpenMP region they are called in, and do not wait for them.
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
  // Neighbouring lanes that lie in one block on both sides.
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

// Zeroes the lanes behind the last channel; shared among threads as above.
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

// Concat and split are one list of copies between parts and the tensor that holds them side by side.
struct Join {
  Shape whole;
  std::vector<Shape> parts;
  int axis;

  std::int64_t begin(std::size_t part) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < part; ++i) sum += parts[i][axis];
    return sum;
  }
};

// The boxes of the parts in the whole; nothing where a part begins inside a block.
std::optional<std::vector<PhysicalBox>> part_boxes(const Join& join, const Layout& layout) {
  std::vector<PhysicalBox> boxes;
  std::vector<std::int64_t> begin(join.whole.rank(), 0);
  for (std::size_t i = 0; i < join.parts.size(); ++i) {
    begin[join.axis] = join.begin(i);
    const auto box = PhysicalBox::make(join.whole, layout, begin, join.parts[i].dims());
    if (!box) return std::nullopt;
    boxes.push_back(*box);
  }
  return boxes;
}

enum class Direction : std::uint8_t { concat, split };

KernelChoice join_boxes(const KernelRequest& request, const Join& join, const Format& format, Direction direction,
                        const std::vector<PhysicalBox>& boxes) {
  const bool concat = direction == Direction::concat;
  std::vector<BoxCopy> copies;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const PhysicalBox part = PhysicalBox::whole(join.parts[i], format.layout);
    copies.emplace_back(concat ? part : boxes[i], concat ? boxes[i] : part, size_of(format.dtype));
  }
  const std::int64_t elements = join.whole.elements();
  return own_kernel(request, [=, copies = std::move(copies)](const Operands& operands, const RunContext&) {
#pragma omp parallel if (elements > kParallelElements)
    for (std::size_t i = 0; i < copies.size(); ++i) {
      copies[i].run(operands.input(concat ? i : 0), operands.output(concat ? 0 : i));
    }
  });
}

// Channels in blocks, with parts that begin inside one.
template <typename Element>
KernelChoice join_lanes(const KernelRequest& request, const Join& join, const Layout& layout, Direction direction) {
  const ChannelView whole = *channel_view(join.whole, layout);
  std::vector<ChannelView> parts;
  std::vector<LaneCopy> copies;
  for (std::size_t i = 0; i < join.parts.size(); ++i) {
    parts.push_back(*channel_view(join.parts[i], layout));
    copies.emplace_back(whole, parts[i], join.begin(i));
  }
  return own_kernel(request, [=, copies = std::move(copies)](const Operands& operands, const RunContext&) {
#pragma omp parallel if (whole.elements() > kParallelElements)
    {
      for (std::size_t i = 0; i < copies.size(); ++i) {
        if (direction == Direction::concat) {
          copies[i].to_whole(operands.input<Element>(i), operands.output<Element>());
        } else {
          copies[i].to_part(operands.input<Element>(0), operands.output<Element>(i));
          clear_padding(parts[i], operands.output<Element>(i));
        }
      }
      if (direction == Direction::concat) clear_padding(whole, operands.output<Element>());
    }
  });
}

KernelChoice join_kernel(const KernelRequest& request, const Join& join, Layout layout, Direction direction) {
  const DataType type = common_type(request.inputs);
  auto boxes = part_boxes(join, layout);
  const bool by_lanes = !boxes && join.axis == 1 && channel_view(join.whole, layout);
  if (!boxes && !by_lanes) {
    layout = Layout::plain(join.whole.rank());
    boxes = part_boxes(join, layout);
  }
  KernelChoice choice =
      by_lanes
          ? with_element(
                type, [&]<typename Element>(Element) { return join_lanes<Element>(request, join, layout, direction); })
          : join_boxes(request, join, {layout, type}, direction, *boxes);
  for (Format& input : choice.inputs) input = {layout, type};
  for (Format& output : choice.outputs) output = {layout, type};
  return choice;
}

// Whether two shapes differ on axis 1 alone, in a layout with blocks of that axis.
bool differs_in_channels(const Shape& a, const Shape& b, const Layout& layout) {
  for (int axis = 0; axis < a.rank(); ++axis) {
    if (axis != 1 && a[axis] != b[axis]) return false;
  }
  return !layout.blocks.empty() && channel_view(a, layout);
}

// Whether writing a value everywhere would also write it into lanes that must hold zeros.
bool fills_padding(const Shape& shape, const Layout& layout, float value) {
  return value != 0 && layout.elements(shape) != shape.elements();
}

template <typename Element>
void fill(Element* values, std::int64_t elements, Element value) {
#pragma omp for schedule(static)
  for (std::int64_t i = 0; i < elements; ++i) values[i] = value;
}

template <typename Element>
KernelChoice pad_kernel(const op::Pad& operation, const KernelRequest& request) {
  const Shape& src = request.inputs[0].shape;
  const Shape& dst = request.node.outputs[0].shape;
  Layout layout = request.inputs[0].layout;
  const float value = operation.value;
  const std::int64_t elements = layout.elements(dst);
  auto box = PhysicalBox::make(dst, layout, operation.before, src.dims());
  const bool usable = !fills_padding(dst, layout, value);
  KernelChoice choice;
  if (!box && usable && differs_in_channels(src, dst, layout)) {
    const LaneCopy copy(*channel_view(dst, layout), *channel_view(src, layout), operation.before[1]);
    choice = own_kernel(request, [=](const Operands& operands, const RunContext&) {
#pragma omp parallel if (elements > kParallelElements)
      {
        fill(operands.output<Element>(), elements, Element(value));
        copy.to_whole(operands.input<Element>(0), operands.output<Element>());
      }
    });
  } else {
    if (!box || !usable) {
      layout = Layout::plain(src.rank());
      box = PhysicalBox::make(dst, layout, operation.before, src.dims());
    }
    const BoxCopy copy(PhysicalBox::whole(src, layout), *box, sizeof(Element));
    const std::int64_t filled = layout.elements(dst);
    choice = own_kernel(request, [=](const Operands& operands, const RunContext&) {
#pragma omp parallel if (filled > kParallelElements)
      {
        fill(operands.output<Element>(), filled, Element(value));
        copy.run(operands.input<Element>(0), operands.output<Element>());
      }
    });
  }
  choice.inputs[0] = choice.outputs[0] = {layout, request.inputs[0].dtype};
  return choice;
}

template <typename Element>
KernelChoice slice_kernel(const op::Slice& operation, const KernelRequest& request) {
  const Shape& src = request.inputs[0].shape;
  const Shape& dst = request.node.outputs[0].shape;
  Layout layout = request.inputs[0].layout;
  auto box = PhysicalBox::make(src, layout, operation.begin, operation.size);
  KernelChoice choice;
  if (!box && differs_in_channels(src, dst, layout)) {
    const ChannelView part = *channel_view(dst, layout);
    const LaneCopy copy(*channel_view(src, layout), part, operation.begin[1]);
    choice = own_kernel(request, [=](const Operands& operands, const RunContext&) {
#pragma omp parallel if (part.elements() > kParallelElements)
      {
        copy.to_part(operands.input<Element>(0), operands.output<Element>());
        clear_padding(part, operands.output<Element>());
      }
    });
  } else {
    if (!box) {
      layout = Layout::plain(src.rank());
      box = PhysicalBox::make(src, layout, operation.begin, operation.size);
    }
    const BoxCopy copy(*box, PhysicalBox::whole(dst, layout), sizeof(Element));
    choice = own_kernel(request, [copy](const Operands& operands, const RunContext&) {
#pragma omp parallel if (copy.elements() > kParallelElements)
      copy.run(operands.input<Element>(0), operands.output<Element>());
    });
  }
  choice.inputs[0] = choice.outputs[0] = {layout, request.inputs[0].dtype};
  return choice;
}

}  // namespace

KernelChoice make(const op::Concat& operation, const KernelRequest& request, const dnnl::engine&) {
  Join join{request.node.outputs[0].shape, {}, operation.axis};
  for (const TensorDesc& input : request.inputs) join.parts.push_back(input.shape);
  return join_kernel(request, join, common_layout(request.inputs), Direction::concat);
}

KernelChoice make(const op::Split& operation, const KernelRequest& request, const dnnl::engine&) {
  Join join{request.inputs[0].shape, {}, operation.axis};
  for (const TensorType& output : request.node.outputs) join.parts.push_back(output.shape);
  return join_kernel(request, join, request.inputs[0].layout, Direction::split);
}

KernelChoice make(const op::Pad& operation, const KernelRequest& request, const dnnl::engine&) {
  return with_element(request.inputs[0].dtype,
                      [&]<typename Element>(Element) { return pad_kernel<Element>(operation, request); });
}

KernelChoice make(const op::Slice& operation, const KernelRequest& request, const dnnl::engine&) {
  return with_element(request.inputs[0].dtype,
                      [&]<typename Element>(Element) { return slice_kernel<Element>(operation, request); });
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
