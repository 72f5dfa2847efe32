// Updates of variables and loss scaling.
#include <algorithm>
#include <cstddef>
#include <functional>

#include "trireme/backend/cuda/elements.cuh"
#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {
namespace {

// Contiguous values to apply a rule to. Addresses are aligned to 16 bytes, the shadow's to 8.
struct UpdateRange {
  float* values = nullptr;
  const float* gradients = nullptr;
  float* states[op::kMostStates] = {};  // unused if the rule does not keep them
  void* shadow = nullptr;               // the values in the narrow type, or null
  std::int64_t elements = 0;
};

// The most elements of a range that one block of threads takes.
constexpr std::int64_t kUpdatePiece = 2048;

struct UpdateLaunch {
  op::OptimizerRule rule;
  DataType shadow_type = DataType::bf16;   // or f16
  const float* learning_rate = nullptr;    // these four are in GPU memory
  const float* gradient_factor = nullptr;  // null: 1; if it is 0, nothing is updated
  const std::uint64_t* step = nullptr;     // updates done before
  const UpdateRange* pieces = nullptr;
};

// variable = decay·variable + share·value, for contiguous values.
struct AverageRange {
  float* variable = nullptr;
  const float* value = nullptr;
  float share = 0;
  int elements = 0;  // at most kAveragePiece
};
constexpr std::int64_t kAveragePiece = 1024;

// Loss scaling. All pointers are to GPU memory.

// Contiguous values of a gradient, aligned to 16 bytes.
struct GradientPiece {
  const float* values = nullptr;
  std::int64_t elements = 0;
};

// The most elements of a piece, which one block of threads checks.
constexpr std::int64_t kGradientPiece = 8192;

struct LossScaleLaunch {
  float* scale = nullptr;
  float* good_updates = nullptr;
  float* skipped_updates = nullptr;
  const float* rates = nullptr;
  float growth_interval = 0;
};

constexpr int kThreads = 256;
constexpr int kVector = 4;
// Vectors per thread, all loaded before the first is used.
constexpr int kVectorsPerThread = static_cast<int>(kUpdatePiece) / (kThreads * kVector);
static_assert(kVectorsPerThread * kThreads * kVector == kUpdatePiece);
constexpr int kGradientVectors = static_cast<int>(kGradientPiece) / (kThreads * kVector);
static_assert(kGradientVectors * kThreads * kVector == kGradientPiece);

// N elements of a piece while a thread works on them.
template <typename Optimizer, int N>
struct Elements {
  static constexpr int kStates = static_cast<int>(Optimizer::kStates.size());
  Pack<float, N> value, gradient, states[op::kMostStates];

  __device__ void load(const UpdateRange& piece, int at) {
    value = load_pack<float, N>(piece.values + at);
    gradient = load_pack<float, N>(piece.gradients + at);
    for (int s = 0; s < kStates; ++s) states[s] = load_pack<float, N>(piece.states[s] + at);
  }
  __device__ void apply(const op::OptimizerRule& rule, const op::Rates<float>& rates, float gradient_factor) {
    for (int i = 0; i < N; ++i) {
      // Rounded separately: a factor of 1 must not change any result.
      const float unscaled = __fmul_rn(gradient_factor, gradient.values[i]);
      float state[op::kMostStates];
      for (int s = 0; s < kStates; ++s) state[s] = states[s].values[i];
      Optimizer::update(rule, rates, unscaled, value.values[i], state);
      for (int s = 0; s < kStates; ++s) states[s].values[i] = state[s];
    }
  }
  __device__ void store(const UpdateRange& piece, int at, DataType shadow_type) const {
    store_pack<float, N>(piece.values + at, value);
    for (int s = 0; s < kStates; ++s) store_pack<float, N>(piece.states[s] + at, states[s]);
    if (piece.shadow == nullptr) return;
    if (shadow_type == DataType::bf16) {
      store_shadow(static_cast<Bf16*>(piece.shadow) + at);
    } else {
      store_shadow(static_cast<Fp16*>(piece.shadow) + at);
    }
  }
  template <typename Element>
  __device__ void store_shadow(Element* to) const {
    Pack<Element, N> shadow;
    for (int i = 0; i < N; ++i) shadow.values[i] = from_float<Element>(value.values[i]);
    store_pack<Element, N>(to, shadow);
  }
};

template <typename Optimizer>
__global__ void __launch_bounds__(kThreads) update_pieces(UpdateLaunch launch) {
  const float gradient_factor = launch.gradient_factor == nullptr ? 1.0f : *launch.gradient_factor;
  if (gradient_factor == 0) return;
  const UpdateRange piece = launch.pieces[blockIdx.x];
  const float rate = *launch.learning_rate, t = static_cast<float>(*launch.step + 1);
  const op::Rates<float> rates{rate, Optimizer::corrected_rate(launch.rule, rate, t)};
  const int count = static_cast<int>(piece.elements);
  const int vectors = count / kVector;
  const int thread = static_cast<int>(threadIdx.x);

  Elements<Optimizer, kVector> elements[kVectorsPerThread];
#pragma unroll
  for (int k = 0; k < kVectorsPerThread; ++k) {
    const int vector = thread + k * kThreads;
    if (vector < vectors) elements[k].load(piece, vector * kVector);
  }
#pragma unroll
  for (int k = 0; k < kVectorsPerThread; ++k) {
    const int vector = thread + k * kThreads;
    if (vector >= vectors) continue;
    elements[k].apply(launch.rule, rates, gradient_factor);
    elements[k].store(piece, vector * kVector, launch.shadow_type);
  }
  const int last = vectors * kVector + thread;
  if (last < count) {
    Elements<Optimizer, 1> rest;
    rest.load(piece, last);
    rest.apply(launch.rule, rates, gradient_factor);
    rest.store(piece, last, launch.shadow_type);
  }
}

__global__ void __launch_bounds__(kThreads) average_pieces(const AverageRange* pieces, float decay) {
  const AverageRange piece = pieces[blockIdx.x];
#pragma unroll
  for (int k = 0; k < static_cast<int>(kAveragePiece) / kThreads; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * kThreads;
    if (i < piece.elements) piece.variable[i] = decay * piece.variable[i] + piece.share * piece.value[i];
  }
}

__global__ void begin_rates(const float* learning_rate, const float* scale, float* rates) {
  rates[0] = *learning_rate;
  rates[1] = 1.0f / *scale;
}

// Infinite or NaN: all exponent bits are set.
__device__ bool overflows(float value) { return (__float_as_uint(value) & 0x7f800000u) == 0x7f800000u; }

// All threads that find an overflow write the same value.
__global__ void __launch_bounds__(kThreads) refuse_overflow(const GradientPiece* pieces, float* factor) {
  const GradientPiece piece = pieces[blockIdx.x];
  const int count = static_cast<int>(piece.elements);
  const int vectors = count / kVector;
  const int thread = static_cast<int>(threadIdx.x);
  Pack<float, kVector> packs[kGradientVectors] = {};
#pragma unroll
  for (int k = 0; k < kGradientVectors; ++k) {
    const int vector = thread + k * kThreads;
    if (vector < vectors) packs[k] = load_pack<float, kVector>(piece.values + vector * kVector);
  }
  bool found = false;
#pragma unroll
  for (int k = 0; k < kGradientVectors; ++k) {
    for (int i = 0; i < kVector; ++i) found = found || overflows(packs[k].values[i]);
  }
  const int last = vectors * kVector + thread;
  if (last < count) found = found || overflows(piece.values[last]);
  if (found) *factor = 0;
}

__global__ void next_scale(LossScaleLaunch launch) {
  const bool skipped = launch.rates[1] == 0;
  const float good_updates = skipped ? 0 : *launch.good_updates + 1;
  const bool grows = good_updates >= launch.growth_interval;
  if (skipped) {
    *launch.scale = fmaxf(*launch.scale / 2, op::kLeastLossScale);
    *launch.skipped_updates += 1;
  } else if (grows) {
    *launch.scale = fminf(*launch.scale * 2, op::kMostLossScale);
  }
  *launch.good_updates = grows ? 0 : good_updates;
}

// Variables begin at multiples of this many elements (the store's alignment of 64 bytes), with only padding between the
// end of one and the next such multiple.
constexpr std::int64_t kAlignment = 16;
// Of an element of a shadow: bf16 or f16.
constexpr std::int64_t kShadowBytes = sizeof(std::uint16_t);

bool lies_behind(const void* array, const void* other, std::int64_t bytes) {
  if (array == nullptr || other == nullptr) return array == other;
  return static_cast<const std::byte*>(array) + bytes == other;
}

// Whether `next` directly follows `range` in all arrays. Every rule keeps padding zero.
bool continues(const UpdateRange& range, const UpdateRange& next) {
  const std::int64_t elements = (range.elements + kAlignment - 1) / kAlignment * kAlignment;
  const std::int64_t f32_bytes = elements * size_of(DataType::f32);
  return lies_behind(range.values, next.values, f32_bytes) && lies_behind(range.gradients, next.gradients, f32_bytes) &&
         std::equal(std::begin(range.states), std::end(range.states), std::begin(next.states),
                    [&](const float* state, const float* other) { return lies_behind(state, other, f32_bytes); }) &&
         lies_behind(range.shadow, next.shadow, elements * kShadowBytes);
}

// Part of a range, in all its arrays.
UpdateRange part_of(const UpdateRange& range, std::int64_t begin, std::int64_t elements) {
  const auto from = [begin](auto* array) { return array == nullptr ? nullptr : array + begin; };
  UpdateRange part{.values = from(range.values),
                   .gradients = from(range.gradients),
                   .shadow = from(static_cast<std::uint16_t*>(range.shadow)),
                   .elements = elements};
  std::transform(std::begin(range.states), std::end(range.states), std::begin(part.states), from);
  return part;
}

// `elements`: of each variable, with the padding of its layout.
std::vector<UpdateRange> merged_ranges(const KernelMemory& memory, const std::vector<std::int64_t>& elements) {
  const Operands operands(memory);
  std::vector<UpdateRange> ranges;
  for (std::size_t pair = 0; pair < elements.size(); ++pair) {
    UpdateRange& range = ranges.emplace_back();
    range = {.values = operands.variable(1 + 2 * pair),
             .gradients = operands.input(2 + 2 * pair),
             .shadow = memory.shadows.empty() ? nullptr : memory.shadows[pair],
             .elements = elements[pair]};
    std::ranges::copy(operands.states(pair), range.states);
  }
  std::ranges::sort(ranges, std::less<const float*>(), &UpdateRange::values);
  std::vector<UpdateRange> merged;
  for (const UpdateRange& range : ranges) {
    if (!merged.empty() && continues(merged.back(), range)) {
      merged.back().elements = range.values + range.elements - merged.back().values;
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

// Work on pieces of many variables in one launch. pieces_of(memory) lists them when the memory is bound; launch(pieces,
// their number, operands) gets them in GPU memory.
template <typename PiecesOf, typename Launch>
class PiecesKernel final : public Kernel {
 public:
  PiecesKernel(CudaDevice& device, PiecesOf pieces_of, Launch launch)
      : device_(device), pieces_of_(std::move(pieces_of)), launch_(std::move(launch)) {}

  std::unique_ptr<Kernel> another() const override {
    return std::make_unique<PiecesKernel>(device_, pieces_of_, launch_);
  }

  void bind(const KernelMemory& memory) override {
    memory_ = memory;
    const Pieces pieces = pieces_of_(memory_);
    const auto bytes = static_cast<std::int64_t>(pieces.size() * sizeof(typename Pieces::value_type));
    count_ = static_cast<int>(pieces.size());
    table_ = device_.allocate(bytes, "the table of an update");
    device_.upload(table_.at(0), pieces.data(), bytes);
    device_.synchronize();
  }

  void run(const RunContext&) override {
    launch_(static_cast<const typename Pieces::value_type*>(table_.at(0)), count_, Operands(memory_));
  }

 private:
  using Pieces = std::invoke_result_t<PiecesOf, const KernelMemory&>;

  CudaDevice& device_;
  PiecesOf pieces_of_;
  Launch launch_;
  KernelMemory memory_;
  DeviceMemory table_;
  int count_ = 0;
};

template <typename PiecesOf, typename Launch>
void set_kernel(KernelChoice& choice, CudaDevice& device, PiecesOf pieces_of, Launch launch) {
  choice.implementation = kImplementation;
  choice.kernel = std::make_unique<PiecesKernel<PiecesOf, Launch>>(device, std::move(pieces_of), std::move(launch));
}

// For pairs from input `first` on: variables keep their layout and their values get the same. Returns the elements of
// each variable, with the padding of its layout.
std::vector<std::int64_t> take_pairs(const KernelRequest& request, std::size_t first, KernelChoice& choice) {
  std::vector<std::int64_t> elements;
  for (std::size_t i = first; i < request.inputs.size(); i += 2) {
    const TensorDesc& variable = request.inputs[i];
    elements.push_back(variable.layout.elements(variable.shape));
    choice.inputs.insert(choice.inputs.end(), 2, variable.layout);
  }
  return elements;
}

}  // namespace

KernelChoice make(const op::ApplyGradients& operation, const KernelRequest& request, CudaDevice& device) {
  KernelChoice choice;
  const int rank_of_rates = request.inputs[0].shape.rank();
  choice.inputs.push_back(Layout::plain(rank_of_rates));
  const auto pieces_of = [elements = take_pairs(request, 1, choice)](const KernelMemory& memory) {
    std::vector<UpdateRange> pieces;
    for (const UpdateRange& range : merged_ranges(memory, elements)) {
      for (std::int64_t begin = 0; begin < range.elements; begin += kUpdatePiece)
        pieces.push_back(part_of(range, begin, std::min(kUpdatePiece, range.elements - begin)));
    }
    return pieces;
  };
  const auto launch = [rule = operation.rule, scaled = rank_of_rates == 1, type = activation_type(request.precision),
                       &device](const UpdateRange* pieces, int count, const Operands& operands) {
    const UpdateLaunch arguments{.rule = rule,
                                 .shadow_type = type,
                                 .learning_rate = operands.input(0),
                                 .gradient_factor = scaled ? operands.input(0) + 1 : nullptr,
                                 .step = &device.run_values()->step,
                                 .pieces = pieces};
    op::Optimizers::visit(rule.kind, [&](auto optimizer) {
      update_pieces<decltype(optimizer)><<<count, kThreads, 0, device.stream()>>>(arguments);
    });
    check(cudaGetLastError(), "an update cannot be started");
  };
  set_kernel(choice, device, pieces_of, launch);
  return choice;
}

KernelChoice make(const op::MovingAverage& operation, const KernelRequest& request, CudaDevice& device) {
  KernelChoice choice;
  const auto pieces_of = [operation, elements = take_pairs(request, 0, choice)](const KernelMemory& memory) {
    const Operands operands(memory);
    std::vector<AverageRange> pieces;
    for (std::size_t pair = 0; pair < elements.size(); ++pair) {
      const double share = (1 - static_cast<double>(operation.decay)) * operation.scales[pair];
      for (std::int64_t begin = 0; begin < elements[pair]; begin += kAveragePiece) {
        pieces.push_back({.variable = operands.variable(2 * pair) + begin,
                          .value = operands.input(2 * pair + 1) + begin,
                          .share = static_cast<float>(share),
                          .elements = static_cast<int>(std::min(kAveragePiece, elements[pair] - begin))});
      }
    }
    return pieces;
  };
  const auto launch = [decay = operation.decay, &device](const AverageRange* pieces, int count, const Operands&) {
    average_pieces<<<count, kThreads, 0, device.stream()>>>(pieces, decay);
    check(cudaGetLastError(), "moving averages cannot be started");
  };
  set_kernel(choice, device, pieces_of, launch);
  return choice;
}

KernelChoice make(const op::Assign&, const KernelRequest& request, CudaDevice& device) {
  const TensorDesc& variable = request.inputs[0];
  KernelChoice choice = function_kernel(
      request, "copy", [bytes = variable.bytes(), &device](const Operands& operands, const RunContext&) {
        if (operands.variable(0) == operands.input(1)) return;  // a variable may be assigned to itself
        device.copy(operands.variable(0), operands.input(1), bytes);
      });
  choice.inputs = {variable.layout, variable.layout};
  return choice;
}

KernelChoice make(const op::UnscaledRates&, const KernelRequest& request, CudaDevice& device) {
  KernelChoice choice;
  choice.inputs = {Layout::plain(0), Layout::plain(0)};
  std::vector<std::int64_t> elements;
  for (std::size_t i = 2; i < request.inputs.size(); ++i) {
    const TensorDesc& gradient = request.inputs[i];
    choice.inputs.emplace_back(as_it_comes(gradient).layout);
    elements.push_back(gradient.shape.elements());
  }
  choice.outputs = {Layout::plain(1)};
  const auto pieces_of = [elements](const KernelMemory& memory) {
    std::vector<GradientPiece> pieces;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const float* const gradient = Operands(memory).input(i + 2);
      for (std::int64_t begin = 0; begin < elements[i]; begin += kGradientPiece)
        pieces.push_back({gradient + begin, std::min(kGradientPiece, elements[i] - begin)});
    }
    return pieces;
  };
  const auto launch = [&device](const GradientPiece* pieces, int count, const Operands& operands) {
    float* const rates = operands.output();
    begin_rates<<<1, 1, 0, device.stream()>>>(operands.input(0), operands.input(1), rates);
    if (count > 0) refuse_overflow<<<count, kThreads, 0, device.stream()>>>(pieces, rates + 1);
    check(cudaGetLastError(), "the check of gradients cannot be started");
  };
  set_kernel(choice, device, pieces_of, launch);
  return choice;
}

KernelChoice make(const op::UpdateLossScale& operation, const KernelRequest& request, CudaDevice& device) {
  const auto interval = static_cast<float>(operation.growth_interval);
  return function_kernel(request, kImplementation, [interval, &device](const Operands& operands, const RunContext&) {
    next_scale<<<1, 1, 0, device.stream()>>>({.scale = operands.variable(0),
                                              .good_updates = operands.variable(1),
                                              .skipped_updates = operands.variable(2),
                                              .rates = operands.input(3),
                                              .growth_interval = interval});
    check(cudaGetLastError(), "the update of the loss scale cannot be started");
  });
}

}  // namespace trireme::cuda
