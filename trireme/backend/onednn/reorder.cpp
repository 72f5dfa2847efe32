#include <algorithm>

#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/onednn/memory_layout.hpp"
#include "trireme/backend/onednn/primitive_kernel.hpp"
#include "trireme/base/error.hpp"

namespace trireme::onednn {
namespace {

constexpr std::int64_t kAlignment = 64;

// Where the inner kernel has a tensor: in the plan's memory, or reordered in the scratch.
struct Copy {
  std::unique_ptr<Kernel> reorder;  // null: uses the plan's memory
  std::int64_t at = 0;              // bytes into the scratch
};

std::vector<Copy> others(const std::vector<Copy>& copies) {
  std::vector<Copy> others;
  for (const Copy& copy : copies) others.push_back({copy.reorder ? copy.reorder->another() : nullptr, copy.at});
  return others;
}

class ReorderedKernel final : public Kernel {
 public:
  ReorderedKernel(std::unique_ptr<Kernel> inner, std::vector<Copy> inputs, std::vector<Copy> outputs,
                  std::int64_t own_scratch)
      : inner_(std::move(inner)), inputs_(std::move(inputs)), outputs_(std::move(outputs)), own_scratch_(own_scratch) {}

  std::unique_ptr<Kernel> another() const override {
    return std::make_unique<ReorderedKernel>(inner_->another(), others(inputs_), others(outputs_), own_scratch_);
  }

  void bind(const KernelMemory& memory) override {
    KernelMemory of_inner = memory;
    of_inner.scratch = at(memory, own_scratch_);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].reorder) continue;
      of_inner.inputs[i] = at(memory, inputs_[i].at);
      bind_reorder(*inputs_[i].reorder, memory.inputs[i], of_inner.inputs[i], of_inner.scratch);
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i].reorder) continue;
      of_inner.outputs[i] = at(memory, outputs_[i].at);
      bind_reorder(*outputs_[i].reorder, of_inner.outputs[i], memory.outputs[i], of_inner.scratch);
    }
    inner_->bind(of_inner);
  }

  void run(const RunContext& context) override {
    for (const Copy& copy : inputs_) {
      if (copy.reorder) copy.reorder->run(context);
    }
    inner_->run(context);
    for (const Copy& copy : outputs_) {
      if (copy.reorder) copy.reorder->run(context);
    }
  }

 private:
  static void* at(const KernelMemory& memory, std::int64_t bytes) {
    return static_cast<std::byte*>(memory.scratch) + bytes;
  }
  static void bind_reorder(Kernel& reorder, void* from, void* to, void* scratch) {
    KernelMemory memory;
    memory.inputs = {from};
    memory.outputs = {to};
    memory.scratch = scratch;  // shared with the inner kernel: they never run at the same time
    reorder.bind(memory);
  }

  std::unique_ptr<Kernel> inner_;
  std::vector<Copy> inputs_, outputs_;
  std::int64_t own_scratch_;
};

}  // namespace

KernelChoice make_reorder(const TensorDesc& from, const Format& to, const dnnl::engine& engine) {
  const dnnl::memory::desc src = to_desc(from);
  const dnnl::memory::desc dst = to_desc(from.shape, to.layout, to.dtype);
  const auto desc = reorder(engine, src, dst);
  if (!desc) {
    fail(ErrorKind::failed, "oneDNN {} has no reorder of {} from {} to {}", library_version(), to_string(from.shape),
         from.format().name(), to.name());
  }
  KernelChoice choice;
  choice.inputs = {from.format()};
  choice.outputs = {to};
  set_kernel(choice, engine, desc, {Argument::input(DNNL_ARG_FROM, src, 0), Argument::output(DNNL_ARG_TO, dst)});
  return choice;
}

KernelChoice with_reorders(KernelChoice inner, const KernelRequest& request, const std::vector<Format>& inputs,
                           const std::vector<Format>& outputs, const dnnl::engine& engine) {
  std::int64_t copies = 0;  // bytes, before the scratch that the kernels share
  std::int64_t scratch = inner.scratch_bytes;
  const auto described = [](const Shape& shape, const Format& format) {
    return TensorDesc{format.dtype, shape, format.layout};
  };
  const auto reordered = [&](const TensorDesc& from, const TensorDesc& to, const TensorDesc& copied) {
    KernelChoice choice = make_reorder(from, to.format(), engine);
    scratch = std::max(scratch, choice.scratch_bytes);
    Copy copy{std::move(choice.kernel), copies};
    copies += (copied.bytes() + kAlignment - 1) / kAlignment * kAlignment;
    return copy;
  };
  std::vector<Copy> in(inputs.size()), out(outputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == inner.inputs[i]) continue;
    const TensorDesc wanted = described(request.inputs[i].shape, inner.inputs[i]);
    in[i] = reordered(described(wanted.shape, inputs[i]), wanted, wanted);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == inner.outputs[i]) continue;
    const TensorDesc made = described(request.node.outputs[i].shape, inner.outputs[i]);
    out[i] = reordered(made, described(made.shape, outputs[i]), made);
  }
  KernelChoice choice;
  choice.inputs = inputs;
  choice.outputs = outputs;
  choice.scratch_bytes = copies + scratch;
  choice.implementation = inner.implementation + "+reorders";
  choice.kernel = std::make_unique<ReorderedKernel>(std::move(inner.kernel), std::move(in), std::move(out), copies);
  return choice;
}

}  // namespace trireme::onednn
