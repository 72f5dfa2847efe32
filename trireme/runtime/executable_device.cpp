#include <algorithm>
#include <utility>

#include "trireme/base/error.hpp"
#include "trireme/runtime/executable_impl.hpp"

namespace trireme {
namespace {

std::int64_t padded(std::int64_t bytes) {
  constexpr std::int64_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Times of a run: beginning, end, and those of instructions.
constexpr int kBeginTime = 0, kEndTime = 1, kFirstInstructionTime = 2;

}  // namespace

Executable::Impl::OnDevice::OnDevice(Impl& owner) : owner_(owner), device_(owner.device_), program_(owner.program_) {
  stage_buffers();
}

std::int64_t Executable::Impl::OnDevice::bytes_of(int buffer) const { return program_.buffers[buffer].bytes; }

// Whether gradients are processed in host memory.
bool Executable::Impl::OnDevice::staged() const {
  const GradientOptions& options = owner_.gradient_options_;
  return options.changes_step() && options.exchange != Exchange::reduce_on_device;
}

void Executable::Impl::OnDevice::stage_buffers() {
  std::int64_t bytes = 0;
  const auto stage = [&](int buffer) {
    if (buffer < 0 || !staged_.emplace(buffer, bytes).second) return;
    bytes += padded(bytes_of(buffer));
  };
  for (const auto& [node, buffer] : program_.placeholders) stage(buffer);
  for (const int buffer : program_.fetches) stage(buffer);
  for (const Instruction& instruction : program_.instructions) {
    if (applies_gradients(instruction)) stage(instruction.inputs[0]);  // the rate: exchanges may need it
  }
  staging_ = device_.allocate_staging(bytes);
  for (const auto& [node, buffer] : program_.placeholders) changed_inputs_.insert(buffer);
}

// A step continues in the stream of the last one it waits for, if free; other branches start in the stream idle for
// longest. On-device reductions leave in one stream and are applied in another, so that neither delays backward.
void Executable::Impl::OnDevice::plan(Walk& walk) const {
  const std::vector<Step>& steps = walk.schedule.steps;
  const bool reduces = owner_.gradient_options_.exchange == Exchange::reduce_on_device;
  const auto is_update = [&](const Step& step) {
    return step.action == Action::compute && applies_gradients(program_.instructions[step.index]);
  };
  const auto works_alone = [&](const Step& step) {  // without the host
    if (reduces) return true;
    return step.action == Action::compute && !(staged() && is_update(step));
  };
  std::vector<std::vector<int>> predecessors(steps.size());
  for (std::size_t at = 0; at < steps.size(); ++at) {
    for (const int next : walk.successors[at]) predecessors[next].push_back(static_cast<int>(at));
  }
  walk.streams.assign(steps.size(), 0);
  walk.waits_for.assign(steps.size(), {});
  walk.has_event.assign(steps.size(), false);
  const int streams = device_.streams();
  std::vector<int> last(
      static_cast<std::size_t>(std::max({streams, device_.outward_stream() + 1, device_.inward_stream() + 1})), -1);
  const auto end_of_compute = last.begin() + streams;
  for (std::size_t at = 0; at < steps.size(); ++at) {
    const Step& step = steps[at];
    if (!works_alone(step)) continue;
    const std::vector<int>& before = predecessors[at];
    auto stream = end_of_compute;
    if (reduces && step.action == Action::start) {
      stream = last.begin() + device_.outward_stream();
    } else if (reduces && is_update(step)) {
      stream = last.begin() + device_.inward_stream();
    } else {
      for (auto it = before.rbegin(); it != before.rend() && stream == end_of_compute; ++it) {
        stream = std::find(last.begin(), end_of_compute, *it);
      }
      if (stream == end_of_compute) stream = std::min_element(last.begin(), end_of_compute);
    }
    walk.streams[at] = static_cast<int>(stream - last.begin());
    // Per other stream, the last one that matters: those before it are done by then.
    std::vector<int> newest(last.size(), -1);
    for (const int earlier : before) {
      if (!works_alone(steps[earlier])) continue;
      int& newest_there = newest[walk.streams[earlier]];
      newest_there = std::max(newest_there, earlier);
    }
    for (std::size_t other = 0; other < newest.size(); ++other) {
      if (static_cast<int>(other) == walk.streams[at] || newest[other] < 0) continue;
      walk.waits_for[at].push_back(newest[other]);
      walk.has_event[newest[other]] = true;
    }
    *stream = static_cast<int>(at);
  }
  const auto add_buckets = [&](Walk::Part& part) {
    std::set<int> buckets;
    for (int at = part.first; at < part.last; ++at) {
      for (const int earlier : predecessors[at]) {
        if (steps[earlier].action == Action::download) buckets.insert(steps[earlier].index);
      }
    }
    part.buckets.assign(buckets.begin(), buckets.end());
  };
  auto finish = walk.schedule.finishes.begin();
  for (int at = 0; at < std::ssize(steps);) {
    Walk::Part part{.first = at, .last = at + 1};
    if (finish != walk.schedule.finishes.end() && finish->first == at) {
      part.last = finish->last;
      part.finish = finish++->bucket;
    } else if (works_alone(steps[at])) {
      part.on_device = true;
      while (part.last < std::ssize(steps) && works_alone(steps[part.last])) ++part.last;
      add_buckets(part);
    }
    at = part.last;
    walk.parts.push_back(std::move(part));
  }
}

void Executable::Impl::OnDevice::plan_exchange() {
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
  // Before anything is downloaded: the exchange may already have written values that must be uploaded.
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

void Executable::Impl::OnDevice::wait_for_stream(int stream) const {
  set_stream(stream);
  const int end = device_.record_event();
  set_stream(0);
  device_.wait_event(end);
}

void Executable::Impl::OnDevice::enqueue_instruction(std::size_t index) {
  if (!owner_.profiling_) return owner_.run_kernel(index);
  const int time = kFirstInstructionTime + 2 * static_cast<int>(timed_.size());
  device_.record_time(time);
  owner_.run_kernel(index);
  device_.record_time(time + 1);
  timed_.push_back(index);
}

void Executable::Impl::OnDevice::enqueue(const Walk& walk, const Walk::Part& part) {
  std::vector<int> event_of(walk.schedule.steps.size(), -1);
  std::set<int> streams(walk.streams.begin() + part.first, walk.streams.begin() + part.last);
  streams.erase(0);
  const int begin = device_.record_event();
  for (const int stream : streams) {
    set_stream(stream);
    device_.wait_event(begin);
  }
  for (int at = part.first; at < part.last; ++at) {
    const auto index = static_cast<std::size_t>(at);
    const Step& step = walk.schedule.steps[index];
    if (step.action == Action::wait) continue;  // the following steps' waits cover it
    set_stream(walk.streams[index]);
    for (const int earlier : walk.waits_for[index]) {
      const int event = event_of[earlier];
      if (event >= 0) device_.wait_event(event);  // else it was in an earlier part
    }
    if (step.action == Action::start) {
      owner_.exchange_->start(step.index);
    } else {
      enqueue_instruction(step.index);
    }
    if (walk.has_event[index]) event_of[index] = device_.record_event();
  }
  for (const int stream : streams) wait_for_stream(stream);
  set_stream(0);
}

void Executable::Impl::OnDevice::run(Walk::Part& part) {
  if (inward_busy_) {
    wait_for_stream(device_.inward_stream());
    behind_first_stream_ = true;
  }
  inward_busy_ = false;
  for (const int bucket : part.buckets) device_.wait_event(downloaded_[bucket]);
  const perf::ScopedSpan span(owner_.trace_.tracks.front(), owner_.trace_.launch);
  if (owner_.profiling_ || !part.graph) return enqueue(*owner_.current_, part);
  part.graph->launch();
}

// Waits for the device: before a run, because within it the device may wait for others, and they for this host.
// Libraries load and compile code in a first run, which cannot be captured.
void Executable::Impl::OnDevice::capture(Walk& walk) {
  if (owner_.profiling_ || !warmed_up_) return;
  for (Walk::Part& part : walk.parts) {
    if (part.on_device && !part.graph) part.graph = device_.capture([&] { enqueue(walk, part); });
  }
}

// Gradients leave in their own stream.
void Executable::Impl::OnDevice::download(int bucket) {
  const auto index = static_cast<std::size_t>(bucket);
  if (served()) {  // the rate goes to the servers with them
    const auto update = static_cast<std::size_t>(owner_.current_->schedule.updates[index]);
    const int rate = program_.instructions[update].inputs[0];
    device_.download(host_address(rate), owner_.address(rate), bytes_of(rate));
  }
  const int complete = device_.record_event();
  set_stream(device_.outward_stream());
  device_.wait_event(complete);
  for (const Copy& copy : gradient_copies_[index]) device_.download(copy.on_host, copy.on_device, copy.bytes);
  downloaded_[index] = device_.record_event();
  set_stream(0);
}

void Executable::Impl::OnDevice::work_beside() {
  if (std::exchange(works_beside_, false) && beside_) beside_();
}

void Executable::Impl::OnDevice::wait_for_download(int bucket) {
  work_beside();
  const perf::ScopedSpan span(owner_.trace_.tracks.front(), owner_.trace_.wait_for_device);
  device_.wait_event_on_host(downloaded_[bucket]);
}

// Gradients or new values come back in another stream.
void Executable::Impl::OnDevice::upload(int bucket) {
  const auto index = static_cast<std::size_t>(bucket);
  if (served()) {
    if (!new_values_[index]) return;
    const int used = device_.record_event();  // the old ones
    set_stream(device_.inward_stream());
    device_.wait_event(used);
    owner_.store_.put_values(bucket_variables_[index]);
    new_values_[index] = false;
  } else {
    set_stream(device_.inward_stream());
    device_.wait_event(downloaded_[index]);
    for (const Copy& copy : gradient_copies_[index]) device_.upload(copy.on_device, copy.on_host, copy.bytes);
  }
  set_stream(0);
  inward_busy_ = true;
}

void Executable::Impl::OnDevice::apply(std::size_t update) {
  const int before = behind_first_stream_ ? device_.record_event() : -1;
  set_stream(device_.inward_stream());
  if (before >= 0) device_.wait_event(before);
  behind_first_stream_ = false;
  enqueue_instruction(update);
  set_stream(0);
  inward_busy_ = true;
}

void Executable::Impl::OnDevice::add_instruction_times() {
  for (std::size_t i = 0; i < timed_.size(); ++i) {
    const int time = kFirstInstructionTime + 2 * static_cast<int>(i);
    owner_.profile_.seconds[timed_[i]] += device_.seconds_between(time, time + 1);
  }
  timed_.clear();
}

void Executable::Impl::OnDevice::input_changed(int buffer) {
  if (read_inputs_ >= 0) device_.wait_event_on_host(read_inputs_);
  sent_.buffers.erase(buffer);
  changed_inputs_.insert(buffer);
}

void Executable::Impl::OnDevice::send_inputs() {
  if (!warmed_up_) return;  // a first run finds nothing to run beside
  if (sent_.places.empty()) {
    std::int64_t bytes = 0;
    for (const auto& [node, buffer] : program_.placeholders) {
      sent_.places.emplace(buffer, bytes);
      bytes += padded(bytes_of(buffer));
    }
    sent_.memory = device_.allocate(bytes, "the next batch");
  }
  device_.set_stream(device_.input_stream());
  if (sent_.taken >= 0) device_.wait_event(sent_.taken);
  for (const int buffer : changed_inputs_) {
    device_.upload(sent_.memory.at(sent_.places.at(buffer)), host_address(buffer), bytes_of(buffer));
  }
  sent_.arrived = read_inputs_ = device_.record_event();
  device_.set_stream(0);
  sent_.buffers.merge(changed_inputs_);
  changed_inputs_.clear();
}

void Executable::Impl::OnDevice::take_inputs() {
  if (!sent_.buffers.empty()) device_.wait_event(sent_.arrived);
  for (const int buffer : sent_.buffers) {
    device_.copy(owner_.address(buffer), sent_.memory.at(sent_.places.at(buffer)), bytes_of(buffer));
  }
  for (const int buffer : changed_inputs_) {
    device_.upload(owner_.address(buffer), host_address(buffer), bytes_of(buffer));
  }
  if (!sent_.buffers.empty() || !changed_inputs_.empty()) sent_.taken = read_inputs_ = device_.record_event();
  sent_.buffers.clear();
  changed_inputs_.clear();
}

double Executable::Impl::OnDevice::wait() {
  {
    const perf::ScopedSpan span(owner_.trace_.tracks.front(), owner_.trace_.wait_for_device);
    device_.synchronize();
  }
  read_inputs_ = sent_.taken = -1;
  const double seconds = device_.seconds_between(kBeginTime, kEndTime);
  add_device_span(seconds);
  return seconds;
}

// The device reports how long its run took but not when; it has ended just now.
void Executable::Impl::OnDevice::add_device_span(double seconds) const {
  perf::Track* const track = owner_.trace_.device;
  if (track == nullptr || !track->is_recording()) return;
  const std::int64_t end = steady_nanoseconds();
  track->add({.begin = end - static_cast<std::int64_t>(1e9 * seconds), .end = end, .label = owner_.trace_.device_run});
}

void Executable::Impl::OnDevice::begin_run() {
  works_beside_ = true;
  device_.record_time(kBeginTime);
  take_inputs();
  device_.set_context(owner_.context_);
  if (!served()) {
    owner_.store_.put_served_values();
  } else if (owner_.store_.version() != values_seen_) {
    // Others have changed values since the last run, possibly only the host copies.
    new_values_.assign(new_values_.size(), true);
  }
}

void Executable::Impl::OnDevice::end_run() {
  if (inward_busy_) wait_for_stream(device_.inward_stream());
  inward_busy_ = behind_first_stream_ = false;
  warmed_up_ = true;
  if (owner_.profiling_) add_instruction_times();
  for (const int buffer : program_.fetches) {
    if (buffer >= 0) device_.download(host_address(buffer), owner_.address(buffer), bytes_of(buffer));
  }
  device_.record_time(kEndTime);
}

}  // namespace trireme
