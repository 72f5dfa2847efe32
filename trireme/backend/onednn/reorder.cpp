#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/onednn/memory_layout.hpp"
#include "trireme/backend/onednn/primitive_kernel.hpp"
#include "trireme/base/error.hpp"

namespace trireme::onednn {

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

}  // namespace trireme::onednn
