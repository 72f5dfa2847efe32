// How fast batch normalisation of ResNet-50's tensors goes on a GPU, as the backend runs it: each form by itself,
// beside the bandwidth of a copy.
//   build/release/bench/bench_batch_norm_gpu [ROUNDS [BATCH...]]
// Bytes are what the two passes of a form have to read and write; what the second pass finds in the L2 cache counts as
// read, so that small tensors can be faster than a copy of large ones.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "trireme/backend/registry.hpp"
#include "trireme/graph/graph.hpp"
#include "trireme/plan/backend.hpp"

namespace {

using namespace trireme;

struct Form {
  std::string name;
  Operation operation;
  int tensors;         // inputs of src's shape, src among them
  int vectors_before;  // inputs of one value per channel between src and the other tensors
  int vectors_after;   // those at the end
  int passes;          // times that a tensor is read or written, in both passes
};

std::vector<Form> forms() {
  using op::Activation;
  return {
      {"forward relu", op::BatchNorm{.activation = Activation::relu}, 1, 2, 0, 3},
      {"forward add relu", op::BatchNorm{.add = true, .activation = Activation::relu}, 2, 2, 0, 4},
      {"backward", op::BatchNormBackward{}, 2, 3, 0, 5},
      {"backward relu", op::BatchNormBackward{.activation = Activation::relu}, 3, 3, 0, 7},
      {"backward relu from src", op::BatchNormBackward{.activation = Activation::relu, .mask_from_src = true}, 2, 3, 1,
       5},
      {"backward add relu", op::BatchNormBackward{.add = true, .activation = Activation::relu}, 3, 3, 0, 7},
      {"backward sum add relu", op::BatchNormBackward{.add = true, .activation = Activation::relu, .sum = true}, 4, 3,
       0, 8},
  };
}

// A kernel with memory of its own.
class BoundForm {
 public:
  BoundForm(const Backend& backend, const Form& form, const Shape& src) : device_(backend.device()) {
    std::vector<Shape> shapes{src};
    shapes.insert(shapes.end(), form.vectors_before, Shape{src[1]});
    shapes.insert(shapes.end(), form.tensors - 1, src);
    shapes.insert(shapes.end(), form.vectors_after, Shape{src[1]});
    std::vector<Tensor> inputs;
    for (const Shape& shape : shapes) inputs.push_back(graph_.add(op::Placeholder{{DataType::f32, shape}}, {}));
    const Node& node = graph_.node(graph_.add(form.operation, inputs));
    KernelRequest request{.node = node, .inputs = {}, .input_open = {}, .output_wish = {}};
    request.precision = Precision::bf16;
    request.input_open.assign(shapes.size(), false);
    request.output_wish.assign(node.outputs.size(), nullptr);
    for (const Shape& shape : shapes) {
      const DataType type = shape.rank() == src.rank() ? DataType::bf16 : DataType::f32;
      request.inputs.push_back({type, shape, Layout::channels_last(shape.rank())});
    }
    choice_ = backend.choose(request);
    KernelMemory memory;
    for (std::size_t i = 0; i < shapes.size(); ++i) memory.inputs.push_back(allocate(shapes[i], choice_.inputs[i]));
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      memory.outputs.push_back(allocate(node.outputs[i].shape, choice_.outputs[i]));
    memory.scratch = allocate(choice_.scratch_bytes);
    choice_.kernel->bind(memory);
  }

  // The fastest of some rounds, each of several runs.
  double seconds(int rounds) {
    constexpr int kRuns = 10;
    double best = 1e9;
    for (int round = 0; round <= rounds; ++round) {  // the first one warms up
      device_.record_time(0);
      for (int run = 0; run < kRuns; ++run) choice_.kernel->run({});
      device_.record_time(1);
      const double seconds = device_.seconds_between(0, 1) / kRuns;
      if (round > 0) best = std::min(best, seconds);
    }
    return best;
  }

 private:
  void* allocate(const Shape& shape, const Format& format) {
    return allocate(TensorDesc{format.dtype, shape, format.layout}.bytes());
  }
  void* allocate(std::int64_t bytes) {
    memory_.push_back(device_.allocate(bytes, "a measurement"));
    return memory_.back().at(0);
  }

  ComputeDevice& device_;
  Graph graph_;
  KernelChoice choice_;
  std::vector<DeviceMemory> memory_;
};

void measure(const Backend& backend, std::int64_t batch, int rounds, double copy) {
  struct Size {
    std::int64_t channels, side;
  };
  constexpr Size kSizes[] = {{64, 112}, {64, 56},  {256, 56},  {128, 56}, {128, 28}, {512, 28},
                             {256, 28}, {256, 14}, {1024, 14}, {512, 14}, {512, 7},  {2048, 7}};
  for (const Form& form : forms()) {
    for (const auto& [channels, side] : kSizes) {
      const Shape shape{batch, channels, side, side};
      const double seconds = BoundForm(backend, form, shape).seconds(rounds);
      const double bytes = 2.0 * form.passes * static_cast<double>(shape.elements());
      fmt::print("{:24} {:>18} {:9.1f} us {:7.0f} GB/s {:5.0f} % of a copy\n", form.name, to_string(shape),
                 seconds * 1e6, bytes / seconds / 1e9, 100 * bytes / seconds / copy);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int rounds = argc > 1 ? std::max(std::atoi(argv[1]), 1) : 5;
    std::vector<std::int64_t> batches;
    for (int i = 2; i < argc; ++i) batches.push_back(std::max(std::atoi(argv[i]), 1));
    if (batches.empty()) batches = {256, 64};
    const auto backend = make_backend("cuda");
    const double copy = backend->device().measure_peak(Precision::bf16).bytes_per_second;
    fmt::print("{}, a copy: {:.0f} GB/s\n", backend->device().name(), copy / 1e9);
    for (const std::int64_t batch : batches) measure(*backend, batch, rounds, copy);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
