// Batch normalization backward. The first pass reads src and the gradient and sums; the second reads them again and
// writes diff_src. If an addend gets the masked gradient, the first pass writes it and the second reads that.
#include <cstddef>

#include "trireme/backend/cuda/batch_norm_tiles.cuh"

namespace trireme::cuda {
namespace {

// How to tell where the activation let the gradient through.
enum class Mask : std::uint8_t { none, dst, src };

// Results of the sums, per channel. diff_src = gradient·scale + src·slope + offset.
struct Results {
  double count;
  float* diff_beta;
  float* diff_gamma;
  float* slope;
  float* offset;

  // From the sums of the gradient and of gradient·(src − mean).
  __device__ void write(const Parameters& parameters, std::int64_t channel, double sum, double products) const {
    const double deviation = sqrt(static_cast<double>(parameters.variance[channel]) + parameters.epsilon);
    const double scale = (parameters.gamma == nullptr ? 1.0 : parameters.gamma[channel]) / deviation;
    const double along_src = -scale * products / (deviation * deviation * count);
    diff_beta[channel] = static_cast<float>(sum);
    if (diff_gamma != nullptr) diff_gamma[channel] = static_cast<float>(products / deviation);
    slope[channel] = static_cast<float>(along_src);
    offset[channel] = static_cast<float>(-scale * sum / count - along_src * parameters.mean[channel]);
  }
};

// The operands of the gradient before the activation.
template <typename Element>
struct Gradient {
  const Element* src;
  const Element* diff_dst;
  const Element* diff_more;
  const Element* dst;
};

// One pack of each tensor that this form of the gradient reads.
template <typename Element, int N, Mask kMask, bool kSum>
struct Loaded {
  Pack<Element, N> src, diff, more, dst;

  // kLastOf...: nobody reads src, or the others, after this.
  template <bool kLastOfSrc, bool kLastOfGradient>
  __device__ void load(const Gradient<Element>& from, std::int64_t at) {
    src = one<kLastOfSrc>(from.src + at);
    diff = one<kLastOfGradient>(from.diff_dst + at);
    if constexpr (kSum) more = one<kLastOfGradient>(from.diff_more + at);
    if constexpr (kMask == Mask::dst) dst = one<kLastOfGradient>(from.dst + at);
  }

  // The values of src, and the gradient.
  __device__ void get(const float (&scale)[N], const float (&shift)[N], float (&values)[N],
                      float (&gradient)[N]) const {
    unpack(src, values);
    unpack(diff, gradient);
    if constexpr (kSum) {
      float added[N];
      unpack(more, added);
#pragma unroll
      for (int i = 0; i < N; ++i) gradient[i] += added[i];
    }
    if constexpr (kMask == Mask::dst) {
      float results[N];
      unpack(dst, results);
#pragma unroll
      for (int i = 0; i < N; ++i) gradient[i] = results[i] > 0 ? gradient[i] : 0;
    }
    if constexpr (kMask == Mask::src) {
#pragma unroll
      for (int i = 0; i < N; ++i) gradient[i] = Affine::at(values[i], scale[i], shift[i]) > 0 ? gradient[i] : 0;
    }
  }

 private:
  template <bool kLast>
  __device__ static Pack<Element, N> one(const Element* from) {
    return kLast ? load_last<Element, N>(from) : load_pack<Element, N>(from);
  }
};

// Rows at a time, so that about twelve loads of a thread are in flight.
template <Mask kMask, bool kSum>
inline constexpr int kRowsAtATime = 12 / (2 + (kSum ? 1 : 0) + (kMask == Mask::dst ? 1 : 0));

template <int N>
__device__ inline void add_products(const float (&values)[N], const float (&gradient)[N], const float (&mean)[N],
                                    Sums<N>& sums) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    sums.first[i] += gradient[i];
    sums.second[i] = fmaf(gradient[i], values[i] - mean[i], sums.second[i]);
  }
}

template <typename Element, int N, Mask kMask, bool kSum, bool kAdd>
__global__ __launch_bounds__(kGradientThreads, 1) void sum_gradient(Tiles tiles, Gradient<Element> from,
                                                                    Element* diff_addend, Parameters parameters,
                                                                    Results results, float2* partials,
                                                                    unsigned* counters) {
  constexpr int kUnroll = kRowsAtATime<kMask, kSum>;
  __shared__ BlockMemory<kGradientThreads, N> told;
  const Position at(tiles);
  const std::int64_t row_elements = static_cast<std::int64_t>(tiles.packs) * N;
  Sums<N> sums;
  if (at.active) {
    const int channel = at.pack * N;
    float mean[N], scale[N], shift[N];
    load_channels(parameters.mean, channel, mean, 0);
    parameters.load(channel, scale, shift);
    const std::int64_t step = Position::row_step(tiles);
    std::int64_t row = at.first_row(tiles);
    std::int64_t offset = row * row_elements + channel;
    for (; row < tiles.rows; row += kUnroll * step, offset += kUnroll * step * row_elements) {
      Loaded<Element, N, kMask, kSum> loaded[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (row + u * step < tiles.rows) {
          loaded[u].template load<false, kAdd>(from, offset + u * step * row_elements);
        }
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (row + u * step >= tiles.rows) continue;
        float values[N], gradient[N];
        loaded[u].get(scale, shift, values, gradient);
        add_products(values, gradient, mean, sums);
        if constexpr (kAdd) store_pack(diff_addend + offset + u * step * row_elements, pack_of<Element, N>(gradient));
      }
    }
  }
  sum_rows(told, tiles, at, sums);
  if (!is_last_of_tile(sums, tiles, at, partials, counters)) return;
  sum_blocks(told, tiles, at, partials,
             [&](int channel, double sum, double products) { results.write(parameters, channel, sum, products); });
}

template <typename Element, int N, Mask kMask, bool kSum>
__global__ __launch_bounds__(kApplyThreads,
                             kGradientApplyBlocks) void apply_gradient(Tiles tiles, Gradient<Element> from,
                                                                       Element* diff_src, Parameters parameters,
                                                                       Results results) {
  constexpr int kUnroll = kRowsAtATime<kMask, kSum> / 2;
  const Position at(tiles);
  if (!at.active) return;
  const int channel = at.pack * N;
  float scale[N], shift[N], slope[N], offsets[N];
  parameters.load(channel, scale, shift);
  load_channels(results.slope, channel, slope, 0);
  load_channels(results.offset, channel, offsets, 0);
  const std::int64_t row_elements = static_cast<std::int64_t>(tiles.packs) * N;
  const std::int64_t step = Position::row_step(tiles);
  std::int64_t row = tiles.rows - 1 - at.first_row(tiles);
  std::int64_t offset = row * row_elements + channel;
  for (; row >= 0; row -= kUnroll * step, offset -= kUnroll * step * row_elements) {
    Loaded<Element, N, kMask, kSum> loaded[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (row - u * step >= 0) {
        loaded[u].template load<true, true>(from, offset - u * step * row_elements);
      }
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (row - u * step < 0) continue;
      float values[N], gradient[N];
      loaded[u].get(scale, shift, values, gradient);
#pragma unroll
      for (int i = 0; i < N; ++i) values[i] = fmaf(gradient[i], scale[i], fmaf(values[i], slope[i], offsets[i]));
      store_pack(diff_src + offset - u * step * row_elements, pack_of<Element, N>(values));
    }
  }
}

// One block per channel.
template <typename Element, int N, Mask kMask, bool kSum>
__global__ __launch_bounds__(kGradientThreads) void sum_plane_gradient(Planes planes, Gradient<Element> from,
                                                                       Element* diff_addend, Parameters parameters,
                                                                       Results results) {
  const std::int64_t channel = blockIdx.x;
  const PlanePosition at(planes);
  float mean[N], scale[N], shift[N];
#pragma unroll
  for (int i = 0; i < N; ++i) mean[i] = parameters.mean[channel];
  parameters.repeat(channel, scale, shift);
  Sums<N> sums;
  for (std::int64_t n = at.active ? at.y : planes.batch; n < planes.batch; n += planes.height) {
    const std::int64_t plane = n * planes.channels + channel;
#pragma unroll 2
    for (int pack = at.x; pack < planes.packs; pack += planes.width) {
      const std::int64_t offset = (plane * planes.packs + pack) * N;
      Loaded<Element, N, kMask, kSum> loaded;
      loaded.template load<false, false>(from, offset);
      float values[N], gradient[N];
      loaded.get(scale, shift, values, gradient);
      add_products(values, gradient, mean, sums);
      if (diff_addend != nullptr) store_pack(diff_addend + offset, pack_of<Element, N>(gradient));
    }
  }
  const float2 total = sum_block<kGradientThreads>(sums);
  if (threadIdx.x == 0) results.write(parameters, channel, total.x, total.y);
}

template <typename Element, int N, Mask kMask, bool kSum>
__global__ __launch_bounds__(kApplyThreads) void apply_plane_gradient(Planes planes, Gradient<Element> from,
                                                                      Element* diff_src, Parameters parameters,
                                                                      Results results) {
  const PlanePosition at(planes);
  const std::int64_t all = planes.batch * planes.channels;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * planes.height;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * planes.height + at.y;
  for (std::int64_t plane = at.active ? first : all; plane < all; plane += step) {
    const std::int64_t channel = plane % planes.channels;
    const float slope = results.slope[channel];
    const float added = results.offset[channel];
    float scale[N], shift[N];
    parameters.repeat(channel, scale, shift);
#pragma unroll 2
    for (int pack = at.x; pack < planes.packs; pack += planes.width) {
      const std::int64_t offset = (plane * planes.packs + pack) * N;
      Loaded<Element, N, kMask, kSum> loaded;
      loaded.template load<true, true>(from, offset);
      float values[N], gradient[N];
      loaded.get(scale, shift, values, gradient);
#pragma unroll
      for (int i = 0; i < N; ++i) values[i] = fmaf(gradient[i], scale[i], fmaf(values[i], slope, added));
      store_pack(diff_src + offset, pack_of<Element, N>(values));
    }
  }
}

// Both passes of one form.
template <typename Element, int N>
class Passes {
 public:
  Passes(const NormWorkspace& place, const NormShape& shape, const Parameters& parameters, const Results& results)
      : place_(place), shape_(shape), parameters_(parameters), results_(results) {}

  template <Mask kMask, bool kSum, bool kAdd>
  void sum(const Gradient<Element>& from, Element* diff_addend) const {
    if (shape_.channels_last) {
      const Tiles tiles = summing_tiles(shape_, N, kGradientThreads, place_.multiprocessors);
      sum_gradient<Element, N, kMask, kSum, kAdd><<<tiles.grid(), kGradientThreads, 0, place_.stream>>>(
          tiles, from, diff_addend, parameters_, results_, static_cast<float2*>(place_.scratch), place_.counters);
    } else {
      sum_plane_gradient<Element, N, kMask, kSum>
          <<<static_cast<unsigned>(shape_.channels), kGradientThreads, 0, place_.stream>>>(
              make_planes(shape_, N, kGradientThreads), from, diff_addend, parameters_, results_);
    }
    check(cudaGetLastError(), "batch_norm_backward: the sums cannot be started");
  }

  template <Mask kMask, bool kSum>
  void apply(const Gradient<Element>& from, Element* diff_src) const {
    const int blocks = place_.multiprocessors * kGradientApplyBlocks;
    if (shape_.channels_last) {
      const Tiles tiles = make_tiles(shape_.per_channel(), shape_.channels / N, kApplyThreads, kApplyThreads, blocks);
      apply_gradient<Element, N, kMask, kSum>
          <<<tiles.grid(), kApplyThreads, 0, place_.stream>>>(tiles, from, diff_src, parameters_, results_);
    } else {
      const Planes planes = make_planes(shape_, N, kApplyThreads);
      const int grid = blocks_for(shape_.batch * shape_.channels, planes.height, 4 * blocks);
      apply_plane_gradient<Element, N, kMask, kSum>
          <<<grid, kApplyThreads, 0, place_.stream>>>(planes, from, diff_src, parameters_, results_);
    }
    check(cudaGetLastError(), "batch_norm_backward: the second pass cannot be started");
  }

 private:
  const NormWorkspace& place_;
  const NormShape& shape_;
  const Parameters& parameters_;
  const Results& results_;
};

// The gradient is diff_dst + diff_more, kept where dst > 0 or, with beta, where the forward kernel's arithmetic on src
// gives more than 0. diff_src may be any tensor that is read; diff_addend too, except src.
struct NormBackward {
  const void* src;
  const float* mean;
  const float* variance;
  const float* gamma;  // null: 1
  const void* diff_dst;
  const void* diff_more;  // may be null
  const void* dst;        // null: no mask by dst
  const float* beta;      // null: no mask by src
  void* diff_src;
  float* diff_beta;
  float* diff_gamma;  // may be null
  void* diff_addend;  // may be null
  float epsilon;
};

// function(mask, sum) with compile-time constants.
template <typename Function>
void with_form(const NormBackward& arguments, Function function) {
  const auto with_mask = [&](auto sum) {
    if (arguments.dst != nullptr) {
      function(std::integral_constant<Mask, Mask::dst>{}, sum);
    } else if (arguments.beta != nullptr) {
      function(std::integral_constant<Mask, Mask::src>{}, sum);
    } else {
      function(std::integral_constant<Mask, Mask::none>{}, sum);
    }
  };
  if (arguments.diff_more != nullptr) {
    with_mask(std::true_type{});
  } else {
    with_mask(std::false_type{});
  }
}

void launch_backward(const NormWorkspace& place, const NormShape& shape, const NormBackward& arguments) {
  auto* const slope = reinterpret_cast<float*>(static_cast<std::byte*>(place.scratch) +
                                               partial_sum_bytes(shape, place.multiprocessors));
  const Parameters parameters{arguments.mean, arguments.variance, arguments.gamma, arguments.beta, arguments.epsilon};
  const Results results{.count = static_cast<double>(shape.per_channel()),
                        .diff_beta = arguments.diff_beta,
                        .diff_gamma = arguments.diff_gamma,
                        .slope = slope,
                        .offset = slope + shape.channels};
  with_pack(shape, [&]<typename Element, int N>(Element, std::integral_constant<int, N>) {
    const Passes<Element, N> passes(place, shape, parameters, results);
    const Gradient<Element> from{
        static_cast<const Element*>(arguments.src), static_cast<const Element*>(arguments.diff_dst),
        static_cast<const Element*>(arguments.diff_more), static_cast<const Element*>(arguments.dst)};
    auto* const diff_src = static_cast<Element*>(arguments.diff_src);
    auto* const diff_addend = static_cast<Element*>(arguments.diff_addend);
    with_form(arguments, [&]<Mask kMask, bool kSum>(std::integral_constant<Mask, kMask>, std::bool_constant<kSum>) {
      if (diff_addend != nullptr) {
        passes.template sum<kMask, kSum, true>(from, diff_addend);
        passes.template apply<Mask::none, false>({from.src, diff_addend, nullptr, nullptr}, diff_src);
      } else {
        passes.template sum<kMask, kSum, false>(from, nullptr);
        passes.template apply<kMask, kSum>(from, diff_src);
      }
    });
  });
}

}  // namespace

KernelChoice make(const op::BatchNormBackward& operation, const KernelRequest& request, CudaDevice& device) {
  const int diff_dst = operation.gamma ? 4 : 3;
  const int diff_addend = operation.gamma ? 3 : 2;
  KernelChoice choice = norm_kernel(
      request, device, [operation](const NormWorkspace& place, const NormShape& shape, const Operands& operands) {
        NormBackward arguments{};
        arguments.src = operands.input<void>(0);
        arguments.mean = operands.input(1);
        arguments.variance = operands.input(2);
        std::size_t next = 3;
        if (operation.gamma) arguments.gamma = operands.input(next++);
        arguments.diff_dst = operands.input<void>(next++);
        if (operation.sum) arguments.diff_more = operands.input<void>(next++);
        if (operation.activation == op::Activation::relu) {
          if (operation.mask_from_src) {
            arguments.beta = operands.input(next);
          } else {
            arguments.dst = operands.input<void>(next);
          }
        }
        next = 2;
        arguments.diff_src = operands.output<void>(0);
        arguments.diff_beta = operands.output(1);
        if (operation.gamma) arguments.diff_gamma = operands.output(next++);
        if (operation.add) arguments.diff_addend = operands.output<void>(next);
        arguments.epsilon = operation.epsilon;
        launch_backward(place, shape, arguments);
      });
  const int of_diff = operation.add ? diff_addend : 0;
  choice.in_place = {{diff_dst, of_diff}};
  if (operation.sum) choice.in_place.emplace_back(diff_dst + 1, of_diff);
  choice.in_place.emplace_back(0, 0);
  return choice;
}

}  // namespace trireme::cuda
