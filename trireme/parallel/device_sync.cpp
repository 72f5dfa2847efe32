#include "trireme/parallel/device_sync.hpp"

#include <cstring>

#include "trireme/comm/collectives.hpp"

namespace trireme::parallel {

DeviceSync::DeviceSync(comm::Communicator& communicator, ComputeDevice& device)
    : communicator_(communicator),
      device_(device),
      on_device_(device.allocate(sizeof(StepValues), "votes")),
      sent_(device.allocate_staging(sizeof(StepValues))),
      received_(device.allocate_staging(sizeof(float))) {}

void DeviceSync::open(std::vector<GradientBucket> buckets, std::uint64_t) {
  buckets_ = std::move(buckets);
  communicator_.set_context("connecting the devices that sum gradients");
  const std::string name =
      comm::broadcast_text(communicator_, communicator_.rank() == 0 ? device_.name_group() : std::string());
  group_ = device_.join_group({.name = name,
                               .rank = communicator_.rank(),
                               .ranks = communicator_.size(),
                               .timeout_seconds = communicator_.timeout().count()});
}

void DeviceSync::begin_step(std::uint64_t) {
  const StepValues values{.weight = weight_ / static_cast<float>(communicator_.size()), .vote = vote_};
  if (std::memcmp(sent_.at(0), &values, sizeof(values)) == 0) return;
  device_.synchronize();  // an earlier step may still read them
  std::memcpy(sent_.at(0), &values, sizeof(values));
}

// Copied to the device in every step, which may be a captured one.
void DeviceSync::start(int bucket) {
  auto* const values = static_cast<StepValues*>(on_device_.at(0));
  if (bucket == 0) device_.upload(values, sent_.at(0), sizeof(StepValues));
  for (const std::span<float> part : buckets_[bucket].parts) {
    group_->sum(part.data(), std::ssize(part), &values->weight);
  }
  if (bucket + 1 < std::ssize(buckets_)) return;
  group_->sum(&values->vote, 1, &values->one);
  device_.download(received_.at(0), &values->vote, sizeof(float));
}

float DeviceSync::agreed() const {
  device_.synchronize();
  float sum = 0;
  std::memcpy(&sum, received_.at(0), sizeof(sum));
  return sum;
}

}  // namespace trireme::parallel
