// The part of Executable that runs on a device that is not the host: inputs are uploaded where they have changed, the
// instructions are given to the device, as one recording from the second run on, and what is fetched is downloaded.
#include <algorithm>

#include "trireme/base/error.hpp"
#include "trireme/runtime/executable.hpp"
#include "trireme/runtime/inter_op_pool.hpp"

namespace trireme {

void* Executable::host_address(int buffer) const {
  return device_.is_host() ? address(buffer) : staging_.at(staged_.at(buffer));
}

void Executable::plan_staging() {
  constexpr std::int64_t kAlignment = 256;
  std::int64_t bytes = 0;
  const auto stage = [&](int buffer) {
    if (buffer < 0 || !staged_.emplace(buffer, bytes).second) return;
    const std::int64_t size = program_.buffers[static_cast<std::size_t>(buffer)].bytes;
    bytes += (size + kAlignment - 1) / kAlignment * kAlignment;
  };
  for (const auto& [node, buffer] : program_.placeholders) stage(buffer);
  for (const int buffer : program_.fetches) stage(buffer);
  staging_ = device_.allocate_staging(bytes);
  for (const auto& [node, buffer] : program_.placeholders) changed_inputs_.insert(buffer);
}

// An instruction goes on in the lane of the last one that it waits for, where nothing has gone on there yet; the other
// branches of the program begin in the lane that has been idle longest.
void Executable::plan_lanes() {
  const std::size_t count = program_.instructions.size();
  lane_of_.assign(count, 0);
  waits_for_.assign(count, {});
  signals_.assign(count, false);
  const int lanes = device_.lanes();
  if (lanes == 1) return;
  const auto successors = hazards(program_);
  std::vector<std::vector<int>> predecessors(count);
  for (const int item : items_) {
    for (const int next : successors[static_cast<std::size_t>(item)]) {
      predecessors[static_cast<std::size_t>(next)].push_back(item);
    }
  }
  std::vector<int> last(static_cast<std::size_t>(lanes), -1);  // [lane]
  for (const int item : items_) {
    const auto index = static_cast<std::size_t>(item);
    const std::vector<int>& before = predecessors[index];
    auto lane = last.end();
    for (auto it = before.rbegin(); it != before.rend() && lane == last.end(); ++it) {
      lane = std::find(last.begin(), last.end(), *it);
    }
    if (lane == last.end()) lane = std::min_element(last.begin(), last.end());
    lane_of_[index] = static_cast<int>(lane - last.begin());
    // Of each other lane the last one that matters: those before it in its lane are done by then.
    std::vector<int> newest(static_cast<std::size_t>(lanes), -1);
    for (const int earlier : before) {
      int& newest_there = newest[static_cast<std::size_t>(lane_of_[static_cast<std::size_t>(earlier)])];
      newest_there = std::max(newest_there, earlier);
    }
    for (int other = 0; other < lanes; ++other) {
      const int earlier = newest[static_cast<std::size_t>(other)];
      if (other == lane_of_[index] || earlier < 0) continue;
      waits_for_[index].push_back(earlier);
      signals_[static_cast<std::size_t>(earlier)] = true;
    }
    *lane = item;
  }
}

void Executable::run_in_lanes() {
  const int lanes = items_.empty() ? 1 : 1 + *std::max_element(lane_of_.begin(), lane_of_.end());
  std::vector<int> signal_of(program_.instructions.size(), -1);
  const int begin = device_.signal();
  for (int lane = 1; lane < lanes; ++lane) {
    device_.set_lane(lane);
    device_.wait_for(begin);
  }
  for (const int item : items_) {
    const auto index = static_cast<std::size_t>(item);
    device_.set_lane(lane_of_[index]);
    for (const int earlier : waits_for_[index]) device_.wait_for(signal_of[static_cast<std::size_t>(earlier)]);
    run_kernel(index);
    if (signals_[index]) signal_of[index] = device_.signal();
  }
  for (int lane = 1; lane < lanes; ++lane) {
    device_.set_lane(lane);
    const int end = device_.signal();
    device_.set_lane(0);
    device_.wait_for(end);
  }
  device_.set_lane(0);
}

// One after the other, with the time of each.
void Executable::run_with_marks() {
  int marks = 0;
  device_.mark(marks++);
  for (const int item : items_) {
    run_kernel(static_cast<std::size_t>(item));
    device_.mark(marks++);
  }
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const int at = static_cast<int>(i);
    profile_.seconds[static_cast<std::size_t>(items_[i])] += device_.seconds_between(at, at + 1);
  }
  ++profile_.runs;
}

void Executable::run_on_device() {
  for (const int buffer : changed_inputs_) {
    device_.upload(address(buffer), host_address(buffer), program_.buffers[static_cast<std::size_t>(buffer)].bytes);
  }
  changed_inputs_.clear();
  device_.set_context(context_);
  run_once_instructions();
  if (profiling_) {
    run_with_marks();
  } else if (!warmed_up_) {  // libraries load and compile what they need in a first run, which cannot be recorded
    run_in_lanes();
    warmed_up_ = true;
  } else {
    if (!recording_) recording_ = device_.record([this] { run_in_lanes(); });
    recording_ ? recording_->replay() : run_in_lanes();
  }
  for (const int buffer : program_.fetches) {
    if (buffer < 0) continue;
    device_.download(host_address(buffer), address(buffer), program_.buffers[static_cast<std::size_t>(buffer)].bytes);
  }
}

}  // namespace trireme
