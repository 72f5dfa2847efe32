// Softmax, its losses and accuracies. One block of threads per row; sums have a fixed order.
#include "trireme/backend/cuda/elements.cuh"
#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {
namespace {

constexpr int kMostThreads = 256;
constexpr int kWarp = 32;

// One warp is enough for short rows.
int threads_for(std::int64_t width) { return width <= 4 * kWarp ? kWarp : kMostThreads; }

// Combines the values of all threads; every thread gets the result.
template <typename Value, typename Combine>
__device__ Value over_block(Value value, Combine combine) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
  __shared__ Value parts[kMostThreads / kWarp];
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  if (warps == 1) return value;
  __syncthreads();  // the last result may still be read
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = parts[0];
  for (int i = 1; i < warps; ++i) value = combine(value, parts[i]);
  return value;
}

template <typename Value>
__device__ Value block_sum(Value value) {
  return over_block(value, [](Value a, Value b) { return a + b; });
}

__device__ float block_max(float value) {
  return over_block(value, [](float a, float b) { return fmaxf(a, b); });
}

__device__ float not_a_number() { return __int_as_float(0x7fffffff); }

__device__ bool is_class(std::int32_t label, std::int64_t classes) { return label >= 0 && label < classes; }

// Logits are shifted by their maximum to avoid overflow.
struct RowSums {
  float maximum;
  float exponentials;
};

template <typename Element>
__device__ RowSums row_sums(const Element* row, std::int64_t width) {
  float maximum = -__int_as_float(0x7f800000);
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) maximum = fmaxf(maximum, to_float(row[i]));
  maximum = block_max(maximum);
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) sum += expf(to_float(row[i]) - maximum);
  return {maximum, block_sum(sum)};
}

// dst may be src.
template <typename Element>
__device__ void write_probabilities(const Element* row, std::int64_t width, const RowSums& sums, float* dst) {
  const float scale = 1.0f / sums.exponentials;
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    dst[i] = expf(to_float(row[i]) - sums.maximum) * scale;
  }
}

template <typename Element>
__global__ void __launch_bounds__(kMostThreads) softmax(std::int64_t width, const Element* src, float* dst) {
  const Element* const row = src + blockIdx.x * width;
  write_probabilities(row, width, row_sums(row, width), dst + blockIdx.x * width);
}

// diff_src may be diff_dst.
template <typename From, typename To>
__global__ void __launch_bounds__(kMostThreads)
    softmax_backward(std::int64_t width, const From* diff_dst, const float* dst, To* diff_src) {
  const std::int64_t begin = blockIdx.x * width;
  float expected = 0;  // mean of diff_dst under the row's probabilities
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x)
    expected += to_float(diff_dst[begin + i]) * dst[begin + i];
  expected = block_sum(expected);
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    const std::int64_t at = begin + i;
    diff_src[at] = from_float<To>(dst[at] * (to_float(diff_dst[at]) - expected));
  }
}

template <typename Element>
__global__ void __launch_bounds__(kMostThreads)
    cross_entropy(std::int64_t width, float smoothing, const Element* logits, const std::int32_t* labels, float* losses,
                  float* probabilities) {
  const Element* const row = logits + blockIdx.x * width;
  const RowSums sums = row_sums(row, width);
  write_probabilities(row, width, sums, probabilities + blockIdx.x * width);

  const float log_sum = logf(sums.exponentials);
  float everywhere = 0;  // −sum of the log of all probabilities
  if (smoothing > 0) {
    for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x)
      everywhere += log_sum - (to_float(row[i]) - sums.maximum);
    everywhere = block_sum(everywhere);
  }
  if (threadIdx.x > 0) return;
  const std::int32_t label = labels[blockIdx.x];
  float loss = not_a_number();
  if (is_class(label, width)) {
    loss = 0;
    if (smoothing < 1) loss += (1 - smoothing) * (log_sum - (to_float(row[label]) - sums.maximum));
    if (smoothing > 0) loss += smoothing / static_cast<float>(width) * everywhere;
  }
  losses[blockIdx.x] = loss;
}

// diff_logits may be the probabilities.
template <typename Element>
__global__ void __launch_bounds__(kMostThreads)
    cross_entropy_backward(std::int64_t width, float smoothing, const float* probabilities, const std::int32_t* labels,
                           const float* diff_losses, Element* diff_logits) {
  const std::int32_t label = labels[blockIdx.x];
  const float diff_loss = diff_losses[blockIdx.x];
  // A label that is not a class must not train anything silently.
  const float everywhere = is_class(label, width) ? smoothing / static_cast<float>(width) : not_a_number();
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    const float target = everywhere + (i == label ? 1 - smoothing : 0.0f);
    const std::int64_t at = blockIdx.x * width + i;
    diff_logits[at] = from_float<Element>(diff_loss * (probabilities[at] - target));
  }
}

template <typename Element>
__global__ void __launch_bounds__(kMostThreads) find_hits(std::int64_t width, std::int64_t k, const Element* logits,
                                                          const std::int32_t* labels, std::int32_t* hits) {
  const std::int32_t label = labels[blockIdx.x];
  const Element* const row = logits + blockIdx.x * width;
  std::int32_t greater = 0;
  if (is_class(label, width)) {
    const float own = to_float(row[label]);
    // "Not less or equal", so that NaN never counts as correct.
    for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) greater += !(to_float(row[i]) <= own) ? 1 : 0;
  }
  greater = block_sum(greater);
  if (threadIdx.x == 0) hits[blockIdx.x] = is_class(label, width) && greater < k ? 1 : 0;
}

__global__ void __launch_bounds__(kMostThreads)
    share_of_hits(std::int64_t rows, const std::int32_t* hits, float* share) {
  std::int32_t sum = 0;
  for (std::int64_t i = threadIdx.x; i < rows; i += blockDim.x) sum += hits[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *share = static_cast<float>(sum) / static_cast<float>(rows);
}

// A tensor as rows of the last axis.
struct LossRows {
  std::int64_t width;
  unsigned count;
  explicit LossRows(const Shape& shape)
      : width(shape[shape.rank() - 1]), count(static_cast<unsigned>(shape.elements() / width)) {}
};

// Contiguous rows, in the input's type.
Format rows_as_they_come(const TensorDesc& input) { return {Layout::plain(input.shape.rank()), input.dtype}; }

// Gradients go back in the type of the layers' activations.
Format gradient_format(const KernelRequest& request) {
  return {Layout::plain(request.node.outputs[0].shape.rank()), activation_type(request.precision)};
}

}  // namespace

KernelChoice make(const op::Softmax&, const KernelRequest& request, CudaDevice& device) {
  const Format format = rows_as_they_come(request.inputs[0]);
  KernelChoice choice = function_kernel(request, kImplementation,
                                        [rows = LossRows(request.inputs[0].shape), type = format.dtype, &device](
                                            const Operands& operands, const RunContext&) {
                                          with_element(type, [&]<typename Element>(Element) {
                                            softmax<<<rows.count, threads_for(rows.width), 0, device.stream()>>>(
                                                rows.width, operands.input<Element>(0), operands.output());
                                          });
                                          check(cudaGetLastError(), "softmax cannot be started");
                                        });
  choice.inputs = {format};
  if (format.dtype == DataType::f32) choice.in_place = {{0, 0}};
  return choice;
}

KernelChoice make(const op::SoftmaxBackward&, const KernelRequest& request, CudaDevice& device) {
  const Format diff_dst = rows_as_they_come(request.inputs[0]);
  const Format diff_src = gradient_format(request);
  KernelChoice choice =
      function_kernel(request, kImplementation,
                      [rows = LossRows(request.inputs[0].shape), from_type = diff_dst.dtype, to_type = diff_src.dtype,
                       &device](const Operands& operands, const RunContext&) {
                        with_element(from_type, [&]<typename From>(From) {
                          with_element(to_type, [&]<typename To>(To) {
                            softmax_backward<<<rows.count, threads_for(rows.width), 0, device.stream()>>>(
                                rows.width, operands.input<From>(0), operands.input(1), operands.output<To>());
                          });
                        });
                        check(cudaGetLastError(), "the gradient of softmax cannot be started");
                      });
  choice.inputs[0] = diff_dst;
  choice.outputs = {diff_src};
  if (diff_dst == diff_src) choice.in_place = {{0, 0}};
  return choice;
}

KernelChoice make(const op::SoftmaxCrossEntropy& operation, const KernelRequest& request, CudaDevice& device) {
  const Format logits = rows_as_they_come(request.inputs[0]);
  KernelChoice choice =
      function_kernel(request, kImplementation,
                      [rows = LossRows(request.inputs[0].shape), smoothing = operation.label_smoothing,
                       type = logits.dtype, &device](const Operands& operands, const RunContext&) {
                        with_element(type, [&]<typename Element>(Element) {
                          cross_entropy<<<rows.count, threads_for(rows.width), 0, device.stream()>>>(
                              rows.width, smoothing, operands.input<Element>(0), operands.input<std::int32_t>(1),
                              operands.output(0), operands.output(1));
                        });
                        check(cudaGetLastError(), "a cross-entropy cannot be started");
                      });
  choice.inputs[0] = logits;
  return choice;
}

KernelChoice make(const op::SoftmaxCrossEntropyBackward& operation, const KernelRequest& request, CudaDevice& device) {
  const Format diff_logits = gradient_format(request);
  KernelChoice choice =
      function_kernel(request, kImplementation,
                      [rows = LossRows(request.inputs[0].shape), smoothing = operation.label_smoothing,
                       type = diff_logits.dtype, &device](const Operands& operands, const RunContext&) {
                        with_element(type, [&]<typename Element>(Element) {
                          cross_entropy_backward<<<rows.count, threads_for(rows.width), 0, device.stream()>>>(
                              rows.width, smoothing, operands.input(0), operands.input<std::int32_t>(1),
                              operands.input(2), operands.output<Element>());
                        });
                        check(cudaGetLastError(), "the gradient of a cross-entropy cannot be started");
                      });
  choice.outputs = {diff_logits};
  if (diff_logits.dtype == DataType::f32) choice.in_place = {{0, 0}};
  return choice;
}

KernelChoice make(const op::TopKAccuracy& operation, const KernelRequest& request, CudaDevice& device) {
  const Format logits = rows_as_they_come(request.inputs[0]);
  const LossRows rows(request.inputs[0].shape);
  KernelChoice choice = function_kernel(
      request, kImplementation,
      [rows, k = operation.k, type = logits.dtype, &device](const Operands& operands, const RunContext&) {
        auto* const hits = operands.scratch<std::int32_t>();
        with_element(type, [&]<typename Element>(Element) {
          find_hits<<<rows.count, threads_for(rows.width), 0, device.stream()>>>(
              rows.width, k, operands.input<Element>(0), operands.input<std::int32_t>(1), hits);
        });
        share_of_hits<<<1, kMostThreads, 0, device.stream()>>>(rows.count, hits, operands.output());
        check(cudaGetLastError(), "an accuracy cannot be started");
      });
  choice.inputs[0] = logits;
  choice.scratch_bytes = rows.count * static_cast<std::int64_t>(sizeof(std::int32_t));
  return choice;
}

}  // namespace trireme::cuda
