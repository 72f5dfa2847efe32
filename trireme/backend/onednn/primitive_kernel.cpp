#include "trireme/backend/onednn/primitive_kernel.hpp"

#include "trireme/base/error.hpp"

namespace trireme::onednn {
namespace {

void* address(const Argument& argument, const KernelMemory& memory) {
  switch (argument.place) {
    case Argument::Place::input:
      return memory.inputs[argument.where];
    case Argument::Place::output:
      return memory.outputs[argument.where];
    case Argument::Place::scratch:
      break;
  }
  return static_cast<std::byte*>(memory.scratch) + argument.where;
}

}  // namespace

PrimitiveKernel::PrimitiveKernel(const dnnl::engine& engine, std::vector<Step> steps)
    : engine_(engine), stream_(engine), steps_(std::move(steps)) {}

void PrimitiveKernel::bind(const KernelMemory& memory) {
  bound_.clear();
  for (const Step& step : steps_) {
    if (step.copy && address(step.arguments[0], memory) == address(step.arguments[1], memory)) continue;
    BoundStep& bound = bound_.emplace_back();
    bound.primitive = step.primitive.get();
    for (const Argument& argument : step.arguments) {
      bound.memories.emplace_back(argument.desc, engine_, address(argument, memory));
      bound.arguments.push_back({argument.id, bound.memories.back().get()});
    }
  }
}

void PrimitiveKernel::run(const RunContext&) {
  for (const BoundStep& step : bound_) {
    // The C API: the C++ one builds its argument list in every call.
    const dnnl_status_t status = dnnl_primitive_execute(step.primitive, stream_.get(),
                                                        static_cast<int>(step.arguments.size()), step.arguments.data());
    if (status != dnnl_success) {
      fail(ErrorKind::failed, "oneDNN {} could not run a primitive (status {})", library_version(),
           static_cast<int>(status));
    }
  }
}

bool is_reference(std::string_view implementation) {
  return implementation.starts_with("ref") || implementation.starts_with("simple");
}

bool is_generated(std::string_view implementation) {
  return implementation.starts_with("jit") || implementation.starts_with("brg");
}

std::string_view instruction_set(std::string_view implementation) {
  const auto colon = implementation.rfind(':');
  return colon == std::string_view::npos ? std::string_view{} : implementation.substr(colon + 1);
}

}  // namespace trireme::onednn
