// What is done to gradients beside averaging them: collecting those of several runs for one update, clipping their
// norm, and LARS' rate for each layer. Stands between a program and the exchange of its replicas, or alone where there
// are none. Made by trainers.
#pragma once

#include <optional>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/runtime/session.hpp"

namespace trireme::train {

// Layer-wise adaptive rate scaling (You, Gitman, Ginsburg 2017), for large batches: each weight's gradient, its decay
// included, is scaled by coefficient · |w| / (|g| + decay · |w|). Biases and batch norm's parameters are left as they
// are, and do not decay. The rule that applies gradients has no decay of its own then.
struct Lars {
  double coefficient = 0.001;
  double weight_decay = 0;
};

struct TransformOptions {
  int accumulate = 1;    // runs whose mean gradient makes an update
  double clip_norm = 0;  // the norm of all gradients together is made at most this; 0: not
  std::optional<Lars> lars = {};

  bool changes_reduced() const { return clip_norm > 0 || lars.has_value(); }
  bool does_something() const { return accumulate > 1 || changes_reduced(); }
};

class GradientTransform : public GradientExchange {
 public:
  // The program that trains with the session's variables. Gradients go to the inner exchange, where there is one, when
  // those of this replica are collected; they are clipped and scaled when they are the mean over all replicas, which an
  // exchange that updates the variables itself does not let us do: Error(bad_input).
  GradientTransform(Session& session, Executable& step, GradientExchange* inner, const TransformOptions& options);

  void begin_step(std::uint64_t step) override;
  void complete(int bucket) override;
  bool ready(int bucket) override;
  void wait(int bucket) override;
  void end_step() override;
  void check() override;
  bool only_collects() const override { return collected_ + 1 < options_.accumulate; }
  bool updates_variables() const override { return inner_ != nullptr && inner_->updates_variables(); }

  double norm() const { return norm_; }  // of the last update's gradients before clipping; 0 where they are not clipped

 private:
  void transform_all();
  void scale_layers();
  double norm_of_gradients() const;
  void scale_gradients(float factor) const;

  VariableStore& store_;
  GradientExchange* inner_;
  TransformOptions options_;
  std::vector<GradientBucket> buckets_;
  std::vector<AlignedMemory> sums_;  // [bucket]: of the runs before; empty with one run per update
  int collected_ = 0;                // runs since the last update
  std::size_t complete_ = 0;         // buckets of this run
  bool transformed_ = false;
  double norm_ = 0;
};

}  // namespace trireme::train
