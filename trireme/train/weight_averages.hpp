// Moving averages of all variables, often better than the last values. Kept by a trainer and in its checkpoints.
#pragma once

#include "trireme/train/checkpoint.hpp"

namespace trireme::train {

class WeightAverages {
 public:
  // average = decay · average + (1 − decay) · value after each update. Early updates use a smaller decay, (1 + t)/(10 +
  // t) at update t, to forget initial values soon. Averages start at the current values.
  WeightAverages(VariableStore& store, double decay);

  void update();  // call after each update of the variables
  HostTensor get(NodeId variable) const { return store_.get_from(averages_, variable); }

  std::span<std::byte> arena() const;  // all averages, to send

  void add_to(Checkpoint& checkpoint) const;
  void restore(const CheckpointFile& file);  // from the checkpoint's averages or, if it has none, its values

 private:
  VariableStore& store_;
  double decay_;
  AlignedMemory averages_;
};

}  // namespace trireme::train
