#include "trireme/train/gradient_transform.hpp"

#include <algorithm>
#include <cmath>

#include "trireme/base/error.hpp"

namespace trireme::train {
namespace {

constexpr std::int64_t kPiece = 1 << 14;  // of a sum: the result does not depend on the number of threads

double square_sum(std::span<const float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  const std::int64_t pieces = (count + kPiece - 1) / kPiece;
  std::vector<double> sums(static_cast<std::size_t>(pieces));
#pragma omp parallel for schedule(static)
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    double sum = 0;
    const std::int64_t end = std::min(count, (piece + 1) * kPiece);
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = piece * kPiece; i < end; ++i) {
      const double value = values[static_cast<std::size_t>(i)];
      sum += value * value;
    }
    sums[static_cast<std::size_t>(piece)] = sum;
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

// a = factor * (a + addend * b), where there is a b.
void combine(std::span<float> a, const float* b, float addend, float factor) {
  const auto count = static_cast<std::int64_t>(a.size());
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

GradientTransform::GradientTransform(Session& session, Executable& step, GradientExchange* inner,
                                     const TransformOptions& options)
    : store_(session.variables()), inner_(inner), options_(options), buckets_(step.gradient_buckets()) {
  if (options.changes_reduced() && updates_variables()) {
    bad_input(
        "parameter servers apply gradients themselves: they can neither be clipped (--clip-norm) nor scaled by layer "
        "(--lars); take --variable-update all_reduce");
  }
  if (options.accumulate > 1) {
    for (const GradientBucket& bucket : buckets_) sums_.emplace_back(bucket.bytes());
  }
}

void GradientTransform::begin_step(std::uint64_t step) {
  complete_ = 0;
  transformed_ = false;
  if (inner_ != nullptr && !only_collects()) inner_->begin_step(step);
}

void GradientTransform::complete(int bucket) {
  complete_ = static_cast<std::size_t>(bucket) + 1;
  const GradientBucket& gradients = buckets_[static_cast<std::size_t>(bucket)];
  const bool last_of_run = complete_ == buckets_.size();
  if (!sums_.empty()) {
    auto* sum = static_cast<float*>(sums_[static_cast<std::size_t>(bucket)].at(0));
    for (const std::span<float> part : gradients.parts) {
      if (!only_collects()) {
        combine(part, sum, 1, 1.0f / static_cast<float>(options_.accumulate));
      } else if (collected_ == 0) {
        std::copy(part.begin(), part.end(), sum);
      } else {
        combine({sum, part.size()}, part.data(), 1, 1);
      }
      sum += part.size();
    }
  }
  if (only_collects()) {
    if (last_of_run) ++collected_;
  } else if (inner_ != nullptr) {
    inner_->complete(bucket);
  }
}

// Clipping needs all of them before any.
bool GradientTransform::ready(int bucket) {
  if (!options_.changes_reduced()) return inner_ == nullptr || inner_->ready(bucket);
  return transformed_;
}

void GradientTransform::wait(int bucket) {
  if (!options_.changes_reduced()) {
    if (inner_ != nullptr) inner_->wait(bucket);
    return;
  }
  if (transformed_) return;
  if (complete_ < buckets_.size()) {
    fail(ErrorKind::failed, "'{}' is needed before all gradients are there to be clipped or scaled",
         buckets_[static_cast<std::size_t>(bucket)].name);
  }
  for (int i = 0; inner_ != nullptr && i < static_cast<int>(buckets_.size()); ++i) inner_->wait(i);
  transform_all();
  transformed_ = true;
}

void GradientTransform::end_step() {
  collected_ = 0;
  if (inner_ != nullptr) inner_->end_step();
}

void GradientTransform::check() {
  if (inner_ != nullptr && !only_collects()) inner_->check();
}

void GradientTransform::transform_all() {
  if (options_.clip_norm > 0) {
    norm_ = norm_of_gradients();
    if (norm_ > options_.clip_norm) scale_gradients(static_cast<float>(options_.clip_norm / norm_));
  }
  if (options_.lars) scale_layers();
}

double GradientTransform::norm_of_gradients() const {
  double sum = 0;
  for (const GradientBucket& bucket : buckets_) {
    for (const std::span<float> part : bucket.parts) sum += square_sum(part);
  }
  return std::sqrt(sum);
}

void GradientTransform::scale_gradients(float factor) const {
  for (const GradientBucket& bucket : buckets_) {
    for (const std::span<float> part : bucket.parts) combine(part, nullptr, 0, factor);
  }
}

void GradientTransform::scale_layers() {
  for (const NodeId id : store_.trainable()) {
    if (store_.node(id).outputs[0].shape.rank() < 2) continue;
    const std::span<const float> values = store_.stored(id);
    const std::span<float> gradient(store_.host_gradient(id), values.size());
    const double value_norm = std::sqrt(square_sum(values)), gradient_norm = std::sqrt(square_sum(gradient));
    const double decay = options_.lars->weight_decay;
    const double size = gradient_norm + decay * value_norm;
    const double rate = value_norm > 0 && size > 0 ? options_.lars->coefficient * value_norm / size : 1;
    combine(gradient, values.data(), static_cast<float>(decay), static_cast<float>(rate));
  }
}

}  // namespace trireme::train
