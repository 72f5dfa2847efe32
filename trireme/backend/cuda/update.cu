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
  int count = 0;
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

struct UnscaledRatesLaunch {
  const float* learning_rate = nullptr;
  const float* scale = nullptr;
  const GradientPiece* pieces = nullptr;
  int count = 0;
  float* rates = nullptr;
};

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

__global__ void begin_rates(UnscaledRatesLaunch launch) {
  launch.rates[0] = *launch.learning_rate;
  launch.rates[1] = 1.0f / *launch.scale;
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

template <typename Piece>
DeviceMemory uploaded(const std::vector<Piece>& pieces, CudaDevice& device) {
  const auto bytes = static_cast<std::int64_t>(pieces.size() * sizeof(Piece));
  DeviceMemory table = device.allocate(bytes, "the table of an update");
  device.upload(table.at(0), pieces.data(), bytes);
  device.synchronize();
  return table;
}

// All variables of an operation in one launch.
class UpdateKernel final : public Kernel {
 public:
  // scaled: the gradients' factor follows the learning rate.
  UpdateKernel(const op::OptimizerRule& rule, bool scaled, DataType shadow_type, std::vector<std::int64_t> elements,
               CudaDevice& device)
      : rule_(rule), scaled_(scaled), shadow_type_(shadow_type), elements_(std::move(elements)), device_(device) {}

  void bind(const KernelMemory& memory) override {
    std::vector<UpdateRange> pieces;
    for (const UpdateRange& range : merged_ranges(memory)) {
      for (std::int64_t begin = 0; begin < range.elements; begin += kUpdatePiece) {
        pieces.push_back(part_of(range, begin, std::min(kUpdatePiece, range.elements - begin)));
      }
    }
    table_ = uploaded(pieces, device_);
    const auto* const rates = static_cast<const float*>(memory.inputs[0]);
    launch_ = {.rule = rule_,
               .shadow_type = shadow_type_,
               .learning_rate = rates,
               .gradient_factor = scaled_ ? rates + 1 : nullptr,
               .step = &device_.run_values()->step,
               .pieces = static_cast<const UpdateRange*>(table_.at(0)),
               .count = static_cast<int>(pieces.size())};
  }

  void run(const RunContext&) override {
    op::Optimizers::visit(launch_.rule.kind, [&](auto optimizer) {
      update_pieces<decltype(optimizer)><<<launch_.count, kThreads, 0, device_.stream()>>>(launch_);
    });
    check(cudaGetLastError(), "an update cannot be started");
  }

 private:
  UpdateRange range_of(const KernelMemory& memory, std::size_t pair) const {
    const Operands operands(memory);
    UpdateRange range{.values = operands.variable(1 + 2 * pair),
                      .gradients = operands.input(2 + 2 * pair),
                      .shadow = memory.shadows.empty() ? nullptr : memory.shadows[pair],
                      .elements = elements_[pair]};
    std::ranges::copy(operands.states(pair), range.states);
    return range;
  }

  std::vector<UpdateRange> merged_ranges(const KernelMemory& memory) const {
    std::vector<UpdateRange> ranges;
    for (std::size_t pair = 0; pair < elements_.size(); ++pair) ranges.push_back(range_of(memory, pair));
    std::sort(ranges.begin(), ranges.end(),
              [](const UpdateRange& a, const UpdateRange& b) { return std::less<const float*>()(a.values, b.values); });
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

  op::OptimizerRule rule_;
  bool scaled_;
  DataType shadow_type_;
  std::vector<std::int64_t> elements_;  // of each variable, with the padding of its layout
  CudaDevice& device_;
  DeviceMemory table_;
  UpdateLaunch launch_;
};

// All averages of an operation in one launch.
class AverageKernel final : public Kernel {
 public:
  AverageKernel(op::MovingAverage operation, std::vector<std::int64_t> elements, CudaDevice& device)
      : operation_(std::move(operation)), elements_(std::move(elements)), device_(device) {}

  void bind(const KernelMemory& memory) override {
    const Operands operands(memory);
    std::vector<AverageRange> pieces;
    for (std::size_t pair = 0; pair < elements_.size(); ++pair) {
      const double share = (1 - static_cast<double>(operation_.decay)) * operation_.scales[pair];
      for (std::int64_t begin = 0; begin < elements_[pair]; begin += kAveragePiece) {
        pieces.push_back({.variable = operands.variable(2 * pair) + begin,
                          .value = operands.input(2 * pair + 1) + begin,
                          .share = static_cast<float>(share),
                          .elements = static_cast<int>(std::min(kAveragePiece, elements_[pair] - begin))});
      }
    }
    count_ = static_cast<int>(pieces.size());
    table_ = uploaded(pieces, device_);
  }

  void run(const RunContext&) override {
    average_pieces<<<count_, kThreads, 0, device_.stream()>>>(static_cast<const AverageRange*>(table_.at(0)),
                                                              operation_.decay);
    check(cudaGetLastError(), "moving averages cannot be started");
  }

 private:
  op::MovingAverage operation_;
  std::vector<std::int64_t> elements_;  // of each variable, with the padding of its layout
  CudaDevice& device_;
  DeviceMemory table_;
  int count_ = 0;
};

// All gradients in one launch.
class UnscaledRatesKernel final : public Kernel {
 public:
  UnscaledRatesKernel(std::vector<std::int64_t> elements, CudaDevice& device)
      : elements_(std::move(elements)), device_(device) {}

  void bind(const KernelMemory& memory) override {
    const Operands operands(memory);
    std::vector<GradientPiece> pieces;
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      const float* const gradient = operands.input(i + 2);
      for (std::int64_t begin = 0; begin < elements_[i]; begin += kGradientPiece) {
        pieces.push_back({gradient + begin, std::min(kGradientPiece, elements_[i] - begin)});
      }
    }
    table_ = uploaded(pieces, device_);
    launch_ = {.learning_rate = operands.input(0),
               .scale = operands.input(1),
               .pieces = static_cast<const GradientPiece*>(table_.at(0)),
               .count = static_cast<int>(pieces.size()),
               .rates = operands.output()};
  }

  void run(const RunContext&) override {
    begin_rates<<<1, 1, 0, device_.stream()>>>(launch_);
    if (launch_.count > 0) {
      refuse_overflow<<<launch_.count, kThreads, 0, device_.stream()>>>(launch_.pieces, launch_.rates + 1);
    }
    check(cudaGetLastError(), "the check of gradients cannot be started");
  }

 private:
  std::vector<std::int64_t> elements_;  // of each gradient
  CudaDevice& device_;
  DeviceMemory table_;
  UnscaledRatesLaunch launch_;
};

// For pairs from input `first` on: variables keep their layout and their values get the same. Returns the elements of
// each variable, with the padding of its layout.
std::vector<std::int64_t> take_pairs(const KernelRequest& request, std::size_t first, KernelChoice& choice) {
  std::vector<std::int64_t> elements;
  for (std::size_t i = first; i < request.inputs.size(); i += 2) {
    const TensorDesc& variable = request.inputs[i];
    elements.push_back(variable.layout.elements(variable.shape));
    choice.inputs.insert(choice.inputs.end(), 2, variable.layout);
  }
  choice.implementation = kImplementation;
  return elements;
}

}  // namespace

KernelChoice make(const op::ApplyGradients& operation, const KernelRequest& request, CudaDevice& device) {
  KernelChoice choice;
  const int rank_of_rates = request.inputs[0].shape.rank();
  choice.inputs.push_back(Layout::plain(rank_of_rates));
  std::vector<std::int64_t> elements = take_pairs(request, 1, choice);
  choice.kernel = std::make_unique<UpdateKernel>(operation.rule, rank_of_rates == 1, activation_type(request.precision),
                                                 std::move(elements), device);
  return choice;
}

KernelChoice make(const op::MovingAverage& operation, const KernelRequest& request, CudaDevice& device) {
  KernelChoice choice;
  std::vector<std::int64_t> elements = take_pairs(request, 0, choice);
  choice.kernel = std::make_unique<AverageKernel>(operation, std::move(elements), device);
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
  choice.implementation = kImplementation;
  choice.kernel = std::make_unique<UnscaledRatesKernel>(std::move(elements), device);
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
