// Moving averages of all variables over the updates of a training, which often do better than the last values. Kept by
// a trainer; they go into its checkpoints.
#pragma once

#include "trireme/train/checkpoint.hpp"

namespace trireme::train {

class WeightAverages {
 public:
  // average = decay · average + (1 − decay) · value after each update; less decay in the first ones, (1 + t)/(10 + t)
  // at update t, so that initial values are soon forgotten. They begin with the values that are there now.
  WeightAverages(VariableStore& store, double decay);

  void update();  // after an update of the variables
  HostTensor get(NodeId variable) const { return store_.get_from(averages_, variable); }

  std::span<std::byte> arena() const;  // all of them, to send

  void add_to(Checkpoint& checkpoint) const;
  void restore(const CheckpointFile& file);  // those of the checkpoint; where it has none, its values

 private:
  VariableStore& store_;
  double decay_;
  AlignedMemory averages_;
};

}  // namespace trireme::train
