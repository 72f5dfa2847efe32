// How replicas agree on variables: by all-reduce (parallel/all_reduce_sync.hpp) or parameter servers
// (ps/worker_sync.hpp). Adds to GradientExchange, which the runtime calls, what Replicas and their users need.
#pragma once

#include <span>
#include <vector>

#include "trireme/runtime/gradient_exchange.hpp"
#include "trireme/runtime/session.hpp"

namespace trireme::parallel {

class GradientSync : public GradientExchange {
 public:
  // Called before the session is made: sets the options that this needs.
  virtual void configure(const Graph& graph, SessionOptions& options) = 0;
  virtual Exchange kind() const = 0;
  // Collective, once: makes this usable as the exchange of the program with these buckets, after `step` updates.
  virtual void open(std::vector<GradientBucket> buckets, std::uint64_t step) = 0;

  // If the exchange writes the variables: fetches the newest values of all, and returns when none are on their way.
  virtual void pull() {}
  // Fetches the optimizer state for these values into this session's store if others hold it, for a checkpoint. It is
  // that of the newest values only while no other replica makes updates.
  virtual void pull_state() {}
  virtual void drop_state() {}  // it is no longer needed there
  virtual void settle() {}
  // This replica sends nothing until its next step: others do not wait for it meanwhile.
  virtual void rest() {}
  virtual void leave() {}  // the last call of a successful run

  // Whether all replicas make the same steps; otherwise each has its own pace and nothing is agreed on.
  virtual bool is_lock_step() const { return true; }
  // Without lockstep: tells all others that training is over; each learns it with its next values.
  virtual void call_end() {}
  virtual bool end_was_called() const { return false; }
  // A number sent with the next step's gradients, such as a vote or a sample count; agreed() is then the sum over all.
  virtual void set_vote(float value) = 0;
  virtual float agreed() const = 0;
  // This replica's weight in the mean: its samples over the mean over replicas; 0 if it has run out of data.
  virtual void set_weight(float weight) = 0;

  virtual std::span<const GradientBucket> buckets() const = 0;
  // Seconds of the last step spent exchanging gradients, with waits: per bucket if one by one, else a single number.
  virtual std::span<const double> communication_seconds() const = 0;
};

}  // namespace trireme::parallel
