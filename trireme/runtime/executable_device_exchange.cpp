// The part of Executable that trains together with other replicas on a device that is not the host. Gradients leave the
// device in a lane of their own while backward goes on, and come back and are applied in another one. Either through
// memory of the host, where any exchange can work on them, or from device to device.
#include "trireme/runtime/executable.hpp"

namespace trireme {

void Executable::plan_device_exchange() {
  device_.synchronize();
  pieces_.clear();
  gradient_copies_.clear();
  bucket_variables_.clear();
  std::vector<GradientBucket> here;
  if (exchange_ != nullptr) here = gradient_buckets(MemorySide::device);
  std::vector<NodeId> served;
  for (const GradientBucket& bucket : here) {
    bucket_variables_.push_back(bucket.variables);
    if (is_served()) served.insert(served.end(), bucket.variables.begin(), bucket.variables.end());
  }
  // Before anything is brought from the device: the exchange may have written values already, which it has to get.
  store_.set_served(served);
  if (is_served()) awaited_.assign(awaited_.size(), true);
  if (exchange_ == nullptr || exchange_->works_on_device()) return;
  const std::vector<GradientBucket> there = gradient_buckets(MemorySide::host);
  for (std::size_t bucket = 0; bucket < here.size(); ++bucket) {
    std::vector<Copy>& copies = gradient_copies_.emplace_back();
    for (std::size_t part = 0; part < here[bucket].parts.size(); ++part) {
      const std::span<float> on_device = here[bucket].parts[part];
      copies.push_back({on_device.data(), there[bucket].parts[part].data(),
                        static_cast<std::int64_t>(on_device.size() * sizeof(float))});
    }
  }
}

// The update of a bucket, after its exchange; neither keeps the lanes of backward waiting. `complete` is the signal
// after its last gradient.
void Executable::give_exchanged(std::size_t bucket, int complete) {
  set_lane(device_.outward_lane());
  device_.wait_for(complete);
  exchange_->complete(static_cast<int>(bucket));
  const int exchanged = device_.signal();
  set_lane(device_.inward_lane());
  device_.wait_for(exchanged);
  give(bucket_updates_[bucket]);
}

void Executable::download_gradients(std::size_t bucket) {
  if (is_served()) {  // the rate goes to the servers with them
    const int rate = program_.instructions[bucket_updates_[bucket]].inputs[0];
    device_.download(host_address(rate), address(rate), program_.buffers[static_cast<std::size_t>(rate)].bytes);
  }
  const int complete = device_.signal();
  set_lane(device_.outward_lane());
  device_.wait_for(complete);
  for (const Copy& copy : gradient_copies_[bucket]) device_.download(copy.on_host, copy.on_device, copy.bytes);
  staged_run_.downloaded.push_back(device_.signal());
  set_lane(0);
}

void Executable::apply_gradients(std::size_t bucket) {
  wait_for_bucket(bucket);
  set_lane(device_.inward_lane());
  device_.wait_for(staged_run_.downloaded[bucket]);
  for (const Copy& copy : gradient_copies_[bucket]) device_.upload(copy.on_device, copy.on_host, copy.bytes);
  give(bucket_updates_[bucket]);
  set_lane(0);
}

// Those that have been or will be downloaded go to the exchange, one after the other; what is back by then is applied.
void Executable::hand_over_gradients() {
  StagedRun& run = staged_run_;
  while (run.complete < run.downloaded.size()) {
    {
      const perf::ScopedSpan span(main_track(), trace_.wait_for_device);
      device_.wait_on_host(run.downloaded[run.complete]);
    }
    if (is_served() && !collected_) awaited_[run.complete] = true;
    exchange_->complete(static_cast<int>(run.complete++));
    if (is_served() || collected_) continue;
    while (run.updated < run.complete && exchange_->ready(static_cast<int>(run.updated))) {
      apply_gradients(run.updated++);
    }
  }
}

// New values of buckets, where others update them, before their first use.
void Executable::bring_values(const std::vector<std::size_t>& buckets) {
  const int used = device_.signal();  // the old ones
  set_lane(device_.inward_lane());
  device_.wait_for(used);
  set_lane(0);
  for (const std::size_t bucket : buckets) {
    if (bucket < staged_run_.downloaded.size()) hand_over_gradients();
    if (!awaited_[bucket]) continue;
    wait_for_bucket(bucket);
    awaited_[bucket] = false;
    set_lane(device_.inward_lane());
    store_.put_values(bucket_variables_[bucket]);
    set_lane(0);
  }
  join_lane(device_.inward_lane());
}

void Executable::run_with_staged_exchange() {
  exchange_times_ = {};
  staged_run_ = {};
  exchange_->begin_step(context_.step);
  // Somebody else has changed values since the last run, and maybe on the host's side alone.
  if (is_served() && store_.version() != values_seen_) awaited_.assign(awaited_.size(), true);
  const bool applies = !is_served() && !collected_;
  const auto apply_all = [&] {
    hand_over_gradients();
    while (applies && staged_run_.updated < staged_run_.complete) apply_gradients(staged_run_.updated++);
    join_lane(device_.inward_lane());
  };
  for (Piece& piece : pieces_) {
    exchange_->check();
    if (!piece.awaits.empty()) bring_values(piece.awaits);
    if (piece.needs_updates) apply_all();
    run_piece(piece);
    if (piece.bucket) download_gradients(*piece.bucket);
  }
  apply_all();
  if (collected_) return;
  if (is_served()) bring_values(fetched_buckets_);
  end_step_of_exchange();
}

}  // namespace trireme
