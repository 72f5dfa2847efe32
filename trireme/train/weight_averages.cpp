#include "trireme/train/weight_averages.hpp"

#include <algorithm>
#include <cstring>

namespace trireme::train {

WeightAverages::WeightAverages(VariableStore& store, double decay)
    : store_(store), decay_(decay), averages_(store.make_arena()) {
  const std::span<const std::byte> values = store_.value_arena();
  std::memcpy(averages_.at(0), values.data(), values.size());
}

void WeightAverages::update() {
  const auto step = static_cast<double>(store_.step);
  const auto keep = static_cast<float>(std::min(decay_, (1 + step) / (10 + step)));
  auto* averages = static_cast<float*>(averages_.at(0));
  const auto* values = reinterpret_cast<const float*>(store_.value_arena().data());
  const std::int64_t count = averages_.bytes() / static_cast<std::int64_t>(sizeof(float));
#pragma omp parallel for simd schedule(static)
  for (std::int64_t i = 0; i < count; ++i) averages[i] = keep * averages[i] + (1 - keep) * values[i];
}

std::span<std::byte> WeightAverages::arena() const {
  return {static_cast<std::byte*>(averages_.at(0)), static_cast<std::size_t>(averages_.bytes())};
}

void WeightAverages::add_to(Checkpoint& checkpoint) const {
  for (const NodeId id : store_.all()) checkpoint.tensors.push_back({average_name(store_.node(id)), get(id)});
}

void WeightAverages::restore(const CheckpointFile& file) {
  for (const NodeId id : store_.all()) {
    const std::string name = average_name(store_.node(id));
    const bool has_average = file.tensors().contains(name);
    store_.set_in(averages_, id, file.tensors().read(has_average ? name : store_.node(id).name));
  }
}

}  // namespace trireme::train
