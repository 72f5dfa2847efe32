#include "trireme/backend/cuda/channels_kernels.hpp"
#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/cuda/matrix_product.hpp"
#include "trireme/backend/function_kernel.hpp"
#include "trireme/base/error.hpp"

namespace trireme::cuda {
namespace {

constexpr int kMostAlgorithms = 8;

// A matrix product with its prologue and epilogue, and which inputs are its factors.
struct ProductWork {
  MatrixProductProblem problem;
  std::vector<Format> inputs;  // the factors'
  Format output;
  std::size_t a = 0, b = 1;
  bool bias = false, relu = false;  // after the product; problem.bias and problem.relu: by cuBLAS
  bool diff_bias = false;           // output 1: sums over the columns of a, which is transposed
};

class ProductKernel final : public Kernel {
 public:
  static constexpr std::int64_t kAlignment = 256;  // that cuBLAS wants for its workspace

  ProductKernel(const ProductWork& work, const MatrixProduct::Algorithm& algorithm, CudaDevice& device)
      : work_(work), product_(work.problem), algorithm_(algorithm), device_(device) {}

  // From the first aligned byte of the scratch on: cuBLAS's workspace, then the sums.
  static std::int64_t sums_at(const MatrixProduct::Algorithm& algorithm) {
    return (algorithm.workspace_bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  static std::int64_t scratch_bytes(const ProductWork& work, const MatrixProduct::Algorithm& algorithm) {
    return kAlignment + sums_at(algorithm) + (work.diff_bias ? channel_sums_scratch_bytes(a_loops(work)) : 0);
  }

  std::unique_ptr<Kernel> another() const override {
    return std::make_unique<ProductKernel>(work_, algorithm_, device_);
  }

  void bind(const KernelMemory& memory) override {
    memory_ = memory;
    const auto scratch = reinterpret_cast<std::uintptr_t>(memory.scratch);
    memory_.scratch = reinterpret_cast<void*>((scratch + kAlignment - 1) / kAlignment * kAlignment);
    if (work_.problem.bias) product_.set_bias(memory.inputs[2]);
  }

  void run(const RunContext&) override {
    const Operands operands(memory_);
    product_.run(device_.cublas(), algorithm_,
                 {.a = memory_.inputs[work_.a],
                  .b = memory_.inputs[work_.b],
                  .dst = memory_.outputs[0],
                  .workspace = memory_.scratch},
                 device_.stream());
    const MatrixProductProblem& problem = work_.problem;
    if (work_.bias != problem.bias || work_.relu != problem.relu) {
      const ChannelLoops dst{.outer = problem.rows, .channels = problem.columns, .inner = 1};
      launch_epilogue(device_, dst, problem.dst_type,
                      {.src = memory_.outputs[0],
                       .bias = work_.bias ? operands.input(2) : nullptr,
                       .dst = memory_.outputs[0],
                       .relu = work_.relu});
    }
    if (work_.diff_bias) {
      launch_channel_sums(device_, a_loops(work_), problem.type, memory_.inputs[work_.a], operands.output(1),
                          operands.scratch<float>(sums_at(algorithm_)));
    }
  }

 private:
  static ChannelLoops a_loops(const ProductWork& work) {
    return {.outer = work.problem.inner, .channels = work.problem.rows, .inner = 1};
  }

  ProductWork work_;
  MatrixProduct product_;
  MatrixProduct::Algorithm algorithm_;
  CudaDevice& device_;
  KernelMemory memory_;
};

// The fastest algorithm that cuBLAS suggests.
KernelChoice fastest_product(ProductWork work, const KernelRequest& request, CudaDevice& device, const Tuner& tuner) {
  const int most = tuner.options().autotune == Autotune::off ? 1 : kMostAlgorithms;
  work.problem.bias = work.bias;
  work.problem.relu = work.relu;
  auto algorithms = MatrixProduct(work.problem).algorithms(device.cublas(), most);
  if (algorithms.empty() && (work.bias || work.relu)) {
    work.problem.bias = work.problem.relu = false;
    algorithms = MatrixProduct(work.problem).algorithms(device.cublas(), most);
  }
  const std::string text = fmt::format("{} | {}", label_of(request.node.op), to_string(work.problem));
  if (algorithms.empty()) {
    fail(ErrorKind::failed, "cuBLAS {} has no matrix product for '{}': {}", cublasLtGetVersion(), request.node.name,
         text);
  }
  std::vector<Tuner::Alternative> alternatives;
  for (const MatrixProduct::Algorithm& algorithm : algorithms) {
    KernelChoice choice;
    choice.inputs = work.inputs;
    // cuBLAS takes a bias of dst's type.
    if (work.bias) choice.inputs.emplace_back(Layout::plain(1), work.problem.bias ? work.problem.type : DataType::f32);
    choice.outputs = {work.output};
    if (work.diff_bias) choice.outputs.emplace_back(Layout::plain(1));
    choice.implementation = work.bias == work.problem.bias && work.relu == work.problem.relu ? "cublas" : "cublas+own";
    choice.scratch_bytes = ProductKernel::scratch_bytes(work, algorithm);
    choice.kernel = std::make_unique<ProductKernel>(work, algorithm, device);
    alternatives.push_back({algorithm.name(), std::move(choice)});
  }
  return tuner.fastest(text, std::move(alternatives), request);
}

// One layout for src and weights, so that the trailing axes of both are one axis of a matrix.
Layout shared_layout(const TensorDesc& preferred, const KernelRequest& request) {
  return is_simple(preferred.layout) ? preferred.layout : activation_layout(request, preferred.shape.rank());
}

}  // namespace

KernelChoice make(const op::FullyConnected& operation, const KernelRequest& request, CudaDevice& device,
                  const Tuner& tuner) {
  const Shape& weights = request.inputs[1].shape;
  const DataType type = activation_type(request.precision);
  // Weights that already have a layout keep it.
  const Layout layout = shared_layout(request.inputs[request.input_open[1] ? 0 : 1], request);
  const ProductWork work{.problem = {.rows = request.inputs[0].shape[0],
                                     .columns = weights[0],
                                     .inner = weights.elements() / weights[0],
                                     .transpose_b = true,
                                     .type = type,
                                     .dst_type = type,
                                     .precision = request.precision},
                         .inputs = {{layout, type}, {layout, type}},
                         .output = {Layout::plain(2), type},
                         .bias = operation.bias,
                         .relu = operation.activation == op::Activation::relu};
  return fastest_product(work, request, device, tuner);
}

KernelChoice make(const op::FullyConnectedBackwardData&, const KernelRequest& request, CudaDevice& device,
                  const Tuner& tuner) {
  const Shape& diff_dst = request.inputs[0].shape;
  const DataType type = activation_type(request.precision);
  const Layout layout = request.input_open[1] ? activation_layout(request, request.inputs[1].shape.rank())
                                              : shared_layout(request.inputs[1], request);
  const ProductWork work{.problem = {.rows = diff_dst[0],
                                     .columns = request.inputs[1].shape.elements() / diff_dst[1],
                                     .inner = diff_dst[1],
                                     .type = type,
                                     .dst_type = type,
                                     .precision = request.precision},
                         .inputs = {{Layout::plain(2), type}, {layout, type}},
                         .output = {layout, type}};
  return fastest_product(work, request, device, tuner);
}

KernelChoice make(const op::FullyConnectedBackwardWeights& operation, const KernelRequest& request, CudaDevice& device,
                  const Tuner& tuner) {
  const Shape& src = request.inputs[0].shape;
  const DataType type = activation_type(request.precision);
  const Layout* const wish = simple_wish(request);
  const Layout layout = wish != nullptr ? *wish : shared_layout(request.inputs[0], request);
  const ProductWork work{.problem = {.rows = request.inputs[1].shape[1],
                                     .columns = src.elements() / src[0],
                                     .inner = src[0],
                                     .transpose_a = true,
                                     .type = type,
                                     .precision = request.precision},
                         .inputs = {{layout, type}, {Layout::plain(2), type}},
                         .output = layout,
                         .a = 1,
                         .b = 0,
                         .diff_bias = operation.bias};
  return fastest_product(work, request, device, tuner);
}

KernelChoice make(const op::MatMul& operation, const KernelRequest& request, CudaDevice& device, const Tuner& tuner) {
  const Shape& dst = request.node.outputs[0].shape;
  const DataType type = activation_type(request.precision);
  const ProductWork work{.problem = {.rows = dst[0],
                                     .columns = dst[1],
                                     .inner = request.inputs[0].shape[operation.transpose_a ? 0 : 1],
                                     .transpose_a = operation.transpose_a,
                                     .transpose_b = operation.transpose_b,
                                     .type = type,
                                     .dst_type = type,
                                     .precision = request.precision},
                         .inputs = {{Layout::plain(2), type}, {Layout::plain(2), type}},
                         .output = {Layout::plain(2), type}};
  return fastest_product(work, request, device, tuner);
}

KernelChoice make(const op::Bias& operation, const KernelRequest& request, CudaDevice& device) {
  const Format format = as_it_comes(request.inputs[0]);
  const ChannelLoops loops = channel_loops(request.inputs[0].shape, format.layout);
  const bool relu = operation.activation == op::Activation::relu;
  KernelChoice choice = function_kernel(
      request, "own", [loops, relu, type = format.dtype, &device](const Operands& operands, const RunContext&) {
        launch_epilogue(
            device, loops, type,
            {.src = operands.input<void>(0), .bias = operands.input(1), .dst = operands.output<void>(), .relu = relu});
      });
  choice.inputs[0] = choice.outputs[0] = format;
  choice.in_place = {{0, 0}};
  return choice;
}

KernelChoice make(const op::BiasBackward&, const KernelRequest& request, CudaDevice& device) {
  const Format format = as_it_comes(request.inputs[0]);
  const ChannelLoops loops = channel_loops(request.inputs[0].shape, format.layout);
  KernelChoice choice = function_kernel(
      request, "own", [loops, type = format.dtype, &device](const Operands& operands, const RunContext&) {
        launch_channel_sums(device, loops, type, operands.input<void>(0), operands.output(), operands.scratch<float>());
      });
  choice.inputs[0] = format;
  choice.scratch_bytes = channel_sums_scratch_bytes(loops);
  return choice;
}

}  // namespace trireme::cuda
