#include "trireme/runtime/executable_device.hpp"

#include <algorithm>

#include "trireme/base/error.hpp"

namespace trireme {
namespace {

std::int64_t padded(std::int64_t bytes) {
  constexpr std::int64_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Moments of a run: its beginning and end, and those of instructions.
constexpr int kBeginMark = 0, kEndMark = 1, kFirstInstructionMark = 2;

}  // namespace

Executable::OnDevice::OnDevice(Executable& owner) : owner_(owner), device_(owner.device_), program_(owner.program_) {
  stage_buffers();
}

std::int64_t Executable::OnDevice::bytes_of(int buffer) const {
  return program_.buffers[static_cast<std::size_t>(buffer)].bytes;
}

// Gradients are worked on in the host's memory.
bool Executable::OnDevice::staged() const {
  const GradientOptions& options = owner_.gradient_options_;
  return options.changes_step() && options.exchange != Exchange::reduce_on_device;
}

void Executable::OnDevice::stage_buffers() {
  std::int64_t bytes = 0;
  const auto stage = [&](int buffer) {
    if (buffer < 0 || !staged_.emplace(buffer, bytes).second) return;
    bytes += padded(bytes_of(buffer));
  };
  for (const auto& [node, buffer] : program_.placeholders) stage(buffer);
  for (const int buffer : program_.fetches) stage(buffer);
  for (const Instruction& instruction : program_.instructions) {
    if (applies_gradients(instruction)) stage(instruction.inputs[0]);  // the rate: exchanges may want it
  }
  staging_ = device_.allocate_staging(bytes);
  for (const auto& [node, buffer] : program_.placeholders) changed_inputs_.insert(buffer);
}

// A step goes on in the lane of the last one that it waits for, if nothing has gone on there yet; the other branches of
// the program begin in the lane that has been idle longest. What devices reduce among themselves leaves in one lane and
// is applied in another, so that neither keeps backward waiting.
void Executable::OnDevice::plan(Walk& walk) const {
  const std::vector<Step>& steps = walk.schedule.steps;
  const bool reduces = owner_.gradient_options_.exchange == Exchange::reduce_on_device;
  const auto is_update = [&](const Step& step) {
    return step.action == Action::compute &&
           applies_gradients(program_.instructions[static_cast<std::size_t>(step.index)]);
  };
  const auto works_alone = [&](const Step& step) {  // nothing of it is the host's
    if (reduces) return true;
    return step.action == Action::compute && !(staged() && is_update(step));
  };
  std::vector<std::vector<int>> predecessors(steps.size());
  for (std::size_t at = 0; at < steps.size(); ++at) {
    for (const int next : walk.successors[at])
      predecessors[static_cast<std::size_t>(next)].push_back(static_cast<int>(at));
  }
  walk.lanes.assign(steps.size(), 0);
  walk.waits_for.assign(steps.size(), {});
  walk.signals.assign(steps.size(), false);
  const int lanes = device_.lanes();
  std::vector<int> last(
      static_cast<std::size_t>(std::max({lanes, device_.outward_lane() + 1, device_.inward_lane() + 1})), -1);
  const auto end_of_compute = last.begin() + lanes;
  for (std::size_t at = 0; at < steps.size(); ++at) {
    const Step& step = steps[at];
    if (!works_alone(step)) continue;
    const std::vector<int>& before = predecessors[at];
    auto lane = end_of_compute;
    if (reduces && step.action == Action::start) {
      lane = last.begin() + device_.outward_lane();
    } else if (reduces && is_update(step)) {
      lane = last.begin() + device_.inward_lane();
    } else {
      for (auto it = before.rbegin(); it != before.rend() && lane == end_of_compute; ++it) {
        lane = std::find(last.begin(), end_of_compute, *it);
      }
      if (lane == end_of_compute) lane = std::min_element(last.begin(), end_of_compute);
    }
    walk.lanes[at] = static_cast<int>(lane - last.begin());
    // Of each other lane the last one that matters: those before it in its lane are done by then.
    std::vector<int> newest(last.size(), -1);
    for (const int earlier : before) {
      if (!works_alone(steps[static_cast<std::size_t>(earlier)])) continue;
      int& newest_there = newest[static_cast<std::size_t>(walk.lanes[static_cast<std::size_t>(earlier)])];
      newest_there = std::max(newest_there, earlier);
    }
    for (std::size_t other = 0; other < newest.size(); ++other) {
      if (static_cast<int>(other) == walk.lanes[at] || newest[other] < 0) continue;
      walk.waits_for[at].push_back(newest[other]);
      walk.signals[static_cast<std::size_t>(newest[other])] = true;
    }
    *lane = static_cast<int>(at);
  }
  auto finish = walk.schedule.finishes.begin();
  for (int at = 0; at < static_cast<int>(steps.size());) {
    Walk::Part part{.first = at, .last = at + 1};
    if (finish != walk.schedule.finishes.end() && finish->first == at) {
      part.last = finish->last;
      part.finish = finish++->bucket;
    } else if (works_alone(steps[static_cast<std::size_t>(at)])) {
      part.on_device = true;
      while (part.last < static_cast<int>(steps.size()) && works_alone(steps[static_cast<std::size_t>(part.last)]))
        ++part.last;
    }
    at = part.last;
    walk.parts.push_back(std::move(part));
  }
}

void Executable::OnDevice::plan_exchange() {
  device_.synchronize();
  gradient_copies_.clear();
  bucket_variables_.clear();
  std::vector<GradientBucket> here;
  if (owner_.gradient_options_.changes_step()) here = owner_.gradient_buckets(MemorySide::device);
  std::vector<NodeId> served_variables;
  for (const GradientBucket& bucket : here) {
    bucket_variables_.push_back(bucket.variables);
    if (served()) served_variables.insert(served_variables.end(), bucket.variables.begin(), bucket.variables.end());
  }
  // Before anything is brought from the device: the exchange may have written values already, which it has to get.
  owner_.store_.set_served(served_variables);
  new_values_.assign(here.size(), served());
  downloaded_.assign(here.size(), -1);
  if (!staged()) return;
  const std::vector<GradientBucket> there = owner_.gradient_buckets(MemorySide::host);
  for (std::size_t bucket = 0; bucket < here.size(); ++bucket) {
    std::vector<Copy>& copies = gradient_copies_.emplace_back();
    for (std::size_t part = 0; part < here[bucket].parts.size(); ++part) {
      const std::span<float> on_device = here[bucket].parts[part];
      copies.push_back({on_device.data(), there[bucket].parts[part].data(),
                        static_cast<std::int64_t>(on_device.size() * sizeof(float))});
    }
  }
}

void Executable::OnDevice::wait_for_lane(int lane) const {
  set_lane(lane);
  const int end = device_.signal();
  set_lane(0);
  device_.wait_for(end);
}

void Executable::OnDevice::give_instruction(std::size_t index) {
  if (!owner_.profiling_) return owner_.run_kernel(index);
  const int mark = kFirstInstructionMark + 2 * static_cast<int>(marked_.size());
  device_.mark(mark);
  owner_.run_kernel(index);
  device_.mark(mark + 1);
  marked_.push_back(index);
}

void Executable::OnDevice::give(const Walk& walk, const Walk::Part& part) {
  std::vector<int> signal_of(walk.schedule.steps.size(), -1);
  std::set<int> lanes(walk.lanes.begin() + part.first, walk.lanes.begin() + part.last);
  lanes.erase(0);
  const int begin = device_.signal();
  for (const int lane : lanes) {
    set_lane(lane);
    device_.wait_for(begin);
  }
  for (int at = part.first; at < part.last; ++at) {
    const auto index = static_cast<std::size_t>(at);
    const Step& step = walk.schedule.steps[index];
    if (step.action == Action::wait) continue;  // the waits of the steps that follow
    set_lane(walk.lanes[index]);
    for (const int earlier : walk.waits_for[index]) {
      const int signal = signal_of[static_cast<std::size_t>(earlier)];
      if (signal >= 0) device_.wait_for(signal);  // else it was in an earlier part
    }
    if (step.action == Action::start) {
      owner_.exchange_->start(step.index);
    } else {
      give_instruction(static_cast<std::size_t>(step.index));
    }
    if (walk.signals[index]) signal_of[index] = device_.signal();
  }
  for (const int lane : lanes) wait_for_lane(lane);
  set_lane(0);
}

void Executable::OnDevice::run(Walk::Part& part) {
  if (inward_busy_) {
    wait_for_lane(device_.inward_lane());
    behind_first_lane_ = true;
  }
  inward_busy_ = false;
  const perf::ScopedSpan span(owner_.trace_.tracks.front(), owner_.trace_.launch);
  const Walk& walk = *owner_.current_;
  // Libraries load and compile what they need in a first run, which cannot be recorded.
  if (owner_.profiling_ || !warmed_up_) return give(walk, part);
  if (!part.recording) part.recording = device_.record([&] { give(walk, part); });
  part.recording ? part.recording->replay() : give(walk, part);
}

// Gradients leave in a lane of their own.
void Executable::OnDevice::download(int bucket) {
  const auto index = static_cast<std::size_t>(bucket);
  if (served()) {  // the rate goes to the servers with them
    const auto update = static_cast<std::size_t>(owner_.current_->schedule.updates[index]);
    const int rate = program_.instructions[update].inputs[0];
    device_.download(host_address(rate), owner_.address(rate), bytes_of(rate));
  }
  const int complete = device_.signal();
  set_lane(device_.outward_lane());
  device_.wait_for(complete);
  for (const Copy& copy : gradient_copies_[index]) device_.download(copy.on_host, copy.on_device, copy.bytes);
  downloaded_[index] = device_.signal();
  set_lane(0);
}

void Executable::OnDevice::wait_for_download(int bucket) {
  const perf::ScopedSpan span(owner_.trace_.tracks.front(), owner_.trace_.wait_for_device);
  device_.wait_on_host(downloaded_[static_cast<std::size_t>(bucket)]);
}

// And come back, or new values do, in another lane.
void Executable::OnDevice::upload(int bucket) {
  const auto index = static_cast<std::size_t>(bucket);
  if (served()) {
    if (!new_values_[index]) return;
    const int used = device_.signal();  // the old ones
    set_lane(device_.inward_lane());
    device_.wait_for(used);
    owner_.store_.put_values(bucket_variables_[index]);
    new_values_[index] = false;
  } else {
    set_lane(device_.inward_lane());
    device_.wait_for(downloaded_[index]);
    for (const Copy& copy : gradient_copies_[index]) device_.upload(copy.on_device, copy.on_host, copy.bytes);
  }
  set_lane(0);
  inward_busy_ = true;
}

void Executable::OnDevice::apply(std::size_t update) {
  const int before = behind_first_lane_ ? device_.signal() : -1;
  set_lane(device_.inward_lane());
  if (before >= 0) device_.wait_for(before);
  behind_first_lane_ = false;
  give_instruction(update);
  set_lane(0);
  inward_busy_ = true;
}

void Executable::OnDevice::add_marked_times() {
  for (std::size_t i = 0; i < marked_.size(); ++i) {
    const int mark = kFirstInstructionMark + 2 * static_cast<int>(i);
    owner_.profile_.seconds[marked_[i]] += device_.seconds_between(mark, mark + 1);
  }
  marked_.clear();
}

void Executable::OnDevice::input_changed(int buffer) {
  if (read_inputs_ >= 0) device_.wait_on_host(read_inputs_);
  sent_.buffers.erase(buffer);
  changed_inputs_.insert(buffer);
}

void Executable::OnDevice::send_inputs() {
  if (!warmed_up_) return;  // a first run finds nothing to go on beside
  if (sent_.places.empty()) {
    std::int64_t bytes = 0;
    for (const auto& [node, buffer] : program_.placeholders) {
      sent_.places.emplace(buffer, bytes);
      bytes += padded(bytes_of(buffer));
    }
    sent_.memory = device_.allocate(bytes, "the next batch");
  }
  device_.set_lane(device_.input_lane());
  if (sent_.taken >= 0) device_.wait_for(sent_.taken);
  for (const int buffer : changed_inputs_) {
    device_.upload(sent_.memory.at(sent_.places.at(buffer)), host_address(buffer), bytes_of(buffer));
  }
  sent_.arrived = read_inputs_ = device_.signal();
  device_.set_lane(0);
  sent_.buffers.merge(changed_inputs_);
  changed_inputs_.clear();
}

void Executable::OnDevice::take_inputs() {
  if (!sent_.buffers.empty()) device_.wait_for(sent_.arrived);
  for (const int buffer : sent_.buffers) {
    device_.copy(owner_.address(buffer), sent_.memory.at(sent_.places.at(buffer)), bytes_of(buffer));
  }
  for (const int buffer : changed_inputs_) {
    device_.upload(owner_.address(buffer), host_address(buffer), bytes_of(buffer));
  }
  if (!sent_.buffers.empty() || !changed_inputs_.empty()) sent_.taken = read_inputs_ = device_.signal();
  sent_.buffers.clear();
  changed_inputs_.clear();
}

double Executable::OnDevice::wait() {
  {
    const perf::ScopedSpan span(owner_.trace_.tracks.front(), owner_.trace_.wait_for_device);
    device_.synchronize();
  }
  read_inputs_ = sent_.taken = -1;
  const double seconds = device_.seconds_between(kBeginMark, kEndMark);
  add_device_span(seconds);
  return seconds;
}

// The device tells how long its run took but not when; that it has ended is known now.
void Executable::OnDevice::add_device_span(double seconds) const {
  perf::Track* const track = owner_.trace_.device;
  if (track == nullptr || !track->is_recording()) return;
  const std::int64_t end = perf::steady_nanoseconds();
  track->add({.begin = end - static_cast<std::int64_t>(1e9 * seconds), .end = end, .label = owner_.trace_.device_run});
}

void Executable::OnDevice::begin_run() {
  device_.mark(kBeginMark);
  take_inputs();
  device_.set_context(owner_.context_);
  if (!served()) {
    owner_.store_.put_served_values();
  } else if (owner_.store_.version() != values_seen_) {
    // Somebody else has changed values since the last run, and maybe on the host's side alone.
    new_values_.assign(new_values_.size(), true);
  }
}

void Executable::OnDevice::end_run() {
  if (inward_busy_) wait_for_lane(device_.inward_lane());
  inward_busy_ = behind_first_lane_ = false;
  warmed_up_ = true;
  if (owner_.profiling_) add_marked_times();
  for (const int buffer : program_.fetches) {
    if (buffer >= 0) device_.download(host_address(buffer), owner_.address(buffer), bytes_of(buffer));
  }
  device_.mark(kEndMark);
}

}  // namespace trireme
