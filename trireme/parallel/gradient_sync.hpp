// How the replicas of a job agree on their variables: by all-reduce (parallel/all_reduce_sync.hpp) or through parameter
// servers (ps/worker_sync.hpp). What Replicas and their users need beside what the runtime calls.
#pragma once

#include <span>
#include <vector>

#include "trireme/runtime/gradient_exchange.hpp"
#include "trireme/runtime/session.hpp"

namespace trireme::parallel {

class GradientSync : public GradientExchange {
 public:
  // Before the session is made: sets what it needs.
  virtual void configure(const Graph& graph, SessionOptions& options) = 0;
  // How this one lets replicas agree, for the schedule of their steps.
  virtual Exchange kind() const = 0;
  // Collective, once: from now on this may be the exchange of the program that has these buckets. Updates so far: step.
  virtual void open(std::vector<GradientBucket> buckets, std::uint64_t step) = 0;

  // Where the exchange writes the variables: brings the newest values of all, and returns when no values are on their
  // way any more. Otherwise there is nothing to do.
  virtual void pull() {}
  // Brings the optimizer state that belongs to these values into this session's store, where others keep it. For a
  // checkpoint; of the newest values only while no other replica makes updates.
  virtual void pull_state() {}
  virtual void settle() {}
  // Nothing comes from this replica until its next step: others do not wait for it meanwhile.
  virtual void rest() {}
  // The last call when all is well.
  virtual void leave() {}

  // Whether all replicas make the same steps; otherwise each goes its own way and nothing is agreed on.
  virtual bool is_lock_step() const { return true; }
  // Where they do not make the same steps: tells all others that training is over; each learns it with new values.
  virtual void call_end() {}
  virtual bool end_was_called() const { return false; }
  // A number that goes with the gradients of the next step; afterwards agreed() is the sum over all replicas. Votes on
  // ending early, counts of samples.
  virtual void set_vote(float value) = 0;
  virtual float agreed() const = 0;
  // This replica's gradients count this much in the mean of the next steps, 1 being an even share: its samples divided
  // by the mean over replicas. 0 where it has run out of data.
  virtual void set_weight(float weight) = 0;

  virtual std::span<const GradientBucket> buckets() const = 0;
  std::int64_t bytes() const {  // of all buckets
    std::int64_t bytes = 0;
    for (const GradientBucket& bucket : buckets()) bytes += bucket.bytes();
    return bytes;
  }
  // Seconds of the last step during which parts of the gradients were being exchanged, waiting for others included: by
  // bucket where they go one after the other, one number for all where they go at the same time.
  virtual std::span<const double> communication_seconds() const = 0;
};

}  // namespace trireme::parallel
