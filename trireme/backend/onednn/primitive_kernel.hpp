// The kernel that runs oneDNN primitives. bind() makes memory objects and argument lists, so run() only executes.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/backend/onednn/dnnl_api.hpp"
#include "trireme/plan/backend.hpp"

namespace trireme::onednn {

// Where an argument's memory is: an input or output by position, or a byte offset into the scratch.
struct Argument {
  enum class Place : std::uint8_t { input, output, scratch };
  int id = 0;  // DNNL_ARG_*
  dnnl::memory::desc desc;
  Place place = Place::input;
  std::int64_t where = 0;

  static Argument input(int id, dnnl::memory::desc desc, std::int64_t i) {
    return {id, std::move(desc), Place::input, i};
  }
  static Argument output(int id, dnnl::memory::desc desc, std::int64_t i = 0) {
    return {id, std::move(desc), Place::output, i};
  }
  static Argument scratch(int id, dnnl::memory::desc desc, std::int64_t bytes = 0) {
    return {id, std::move(desc), Place::scratch, bytes};
  }
};

struct Step {
  dnnl::primitive primitive;
  std::vector<Argument> arguments;
  // A copy from the first argument to the second, skipped if the plan gave both the same memory.
  bool copy = false;
};

class PrimitiveKernel final : public Kernel {
 public:
  PrimitiveKernel(const dnnl::engine& engine, std::vector<Step> steps);
  std::unique_ptr<Kernel> another() const override { return std::make_unique<PrimitiveKernel>(engine_, steps_); }
  void bind(const KernelMemory& memory) override;
  void run(const RunContext& context) override;

 private:
  struct BoundStep {
    dnnl_primitive_t primitive = nullptr;
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<Step> steps_;
  std::vector<BoundStep> bound_;
};

// A step with its scratchpad at the start of the choice's scratch; steps run one at a time, so all share it.
template <typename PrimitiveDesc>
Step make_step(KernelChoice& choice, const PrimitiveDesc& desc, std::vector<Argument> arguments, bool copy = false) {
  const dnnl::memory::desc scratchpad = desc.scratchpad_desc();
  const std::int64_t bytes = bytes_of(scratchpad);
  if (bytes > 0) arguments.push_back(Argument::scratch(DNNL_ARG_SCRATCHPAD, scratchpad));
  choice.scratch_bytes = std::max(choice.scratch_bytes, bytes);
  return {dnnl::primitive(desc.get()), std::move(arguments), copy};
}

// Completes a choice with a kernel of one primitive: its scratchpad and the implementation's name.
template <typename PrimitiveDesc>
void set_kernel(KernelChoice& choice, const dnnl::engine& engine, const PrimitiveDesc& desc,
                std::vector<Argument> arguments) {
  choice.implementation = desc.impl_info_str();
  std::vector<Step> steps;
  steps.push_back(make_step(choice, desc, std::move(arguments)));
  choice.kernel = std::make_unique<PrimitiveKernel>(engine, std::move(steps));
}

// What an implementation's name tells: reference code, code generated for this CPU, and the instruction set.
bool is_reference(std::string_view implementation);
bool is_generated(std::string_view implementation);
std::string_view instruction_set(std::string_view implementation);

}  // namespace trireme::onednn
