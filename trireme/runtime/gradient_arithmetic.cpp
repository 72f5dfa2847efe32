#include "trireme/runtime/gradient_arithmetic.hpp"

#include <algorithm>
#include <cmath>

namespace trireme {
namespace {

constexpr std::int64_t kPiece = 1 << 14;  // of a sum: makes the result independent of the number of threads

double square_sum(std::span<const float> values) {
  const auto count = std::ssize(values);
  const std::int64_t pieces = (count + kPiece - 1) / kPiece;
  std::vector<double> sums(pieces);
#pragma omp parallel for schedule(static)
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    double sum = 0;
    const std::int64_t end = std::min(count, (piece + 1) * kPiece);
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = piece * kPiece; i < end; ++i) {
      const double value = values[i];
      sum += value * value;
    }
    sums[piece] = sum;
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

// a = factor * (a + addend * b), if there is a b.
void combine(std::span<float> a, const float* b, float addend, float factor) {
  const auto count = std::ssize(a);
  float* to = a.data();
  if (b == nullptr) {
#pragma omp parallel for simd schedule(static)
    for (std::int64_t i = 0; i < count; ++i) to[i] *= factor;
    return;
  }
#pragma omp parallel for simd schedule(static)
  for (std::int64_t i = 0; i < count; ++i) to[i] = factor * (to[i] + addend * b[i]);
}

}  // namespace

GradientArithmetic::GradientArithmetic(VariableStore& store, std::vector<GradientBucket> buckets,
                                       const GradientOptions& options, int micro_batches)
    : store_(store), options_(options), buckets_(std::move(buckets)), micro_batches_(micro_batches) {
  if (options.accumulate < 2) return;
  for (const GradientBucket& bucket : buckets_) sums_.push_back({.memory = AlignedMemory(bucket.bytes())});
}

void GradientArithmetic::accumulate(int bucket) {
  auto& [memory, count] = sums_[bucket];
  auto* sum = static_cast<float*>(memory.at(0));
  const bool is_last = count + 1 == options_.accumulate;
  for (const std::span<float> part : buckets_[bucket].parts) {
    if (is_last) {
      combine(part, sum, 1, 1.0f / static_cast<float>(options_.accumulate));
    } else if (count == 0) {
      std::copy(part.begin(), part.end(), sum);
    } else {
      combine({sum, part.size()}, part.data(), 1, 1);
    }
    sum += part.size();
  }
  count = is_last ? 0 : count + 1;
}

void GradientArithmetic::transform(double scale) {
  if (options_.clip_norm > 0) clip(scale);
  if (options_.lars) scale_layers(scale);
}

void GradientArithmetic::clip(double scale) {
  double sum = 0;
  for (const GradientBucket& bucket : buckets_) {
    for (const std::span<float> part : bucket.parts) sum += square_sum(part);
  }
  norm_ = std::sqrt(sum) / scale;
  if (!(norm_ > options_.clip_norm)) return;  // also for NaN
  const auto factor = static_cast<float>(options_.clip_norm / norm_);
  for (const GradientBucket& bucket : buckets_) {
    for (const std::span<float> part : bucket.parts) combine(part, nullptr, 0, factor);
  }
}

void GradientArithmetic::scale_layers(double scale) {
  for (const NodeId id : store_.trainable()) {
    if (store_.node(id).outputs[0].shape.rank() < 2) continue;
    const std::span<const float> values = store_.stored(id);
    const std::span<float> gradient(store_.host_gradient(id), values.size());
    const double value_norm = std::sqrt(square_sum(values)), gradient_norm = std::sqrt(square_sum(gradient)) / scale;
    const double decay = options_.lars->weight_decay;
    const double size = gradient_norm + decay * value_norm;
    const double rate = value_norm > 0 && size > 0 ? options_.lars->coefficient * value_norm / size : 1;
    combine(gradient, values.data(), static_cast<float>(decay * scale), static_cast<float>(rate));
  }
}

void merge_groups(std::span<float* const> groups, std::int64_t elements, int group) {
  constexpr std::int64_t kLine = 64 / sizeof(float);  // groups must not share cache lines
  const auto count = std::ssize(groups);
  const std::int64_t lines = (elements + kLine - 1) / kLine;
  const std::int64_t begin = lines * group / count * kLine;
  const std::int64_t end = std::min(elements, lines * (group + 1) / count * kLine);
  float* const to = groups[0];
  const float share = 1.0f / static_cast<float>(count);
#pragma omp parallel for simd schedule(static)
  for (std::int64_t i = begin; i < end; ++i) {
    float sum = to[i];
    for (std::size_t other = 1; other < groups.size(); ++other) sum += groups[other][i];
    to[i] = sum * share;
  }
}

}  // namespace trireme
