// The part of Executable that runs on a device that is not the host: inputs are uploaded where they have changed, the
// instructions are given to the device, as recordings from the second run on, and what is fetched is downloaded.
#include <algorithm>

#include "trireme/base/error.hpp"
#include "trireme/runtime/executable.hpp"
#include "trireme/runtime/inter_op_pool.hpp"

namespace trireme {
namespace {

std::int64_t padded(std::int64_t bytes) {
  constexpr std::int64_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Moments of a run: its beginning and end, and those of instructions.
constexpr int kBeginMark = 0, kEndMark = 1, kFirstInstructionMark = 2;

}  // namespace

void* Executable::host_address(int buffer) const {
  return device_.is_host() ? address(buffer) : staging_.at(staged_.at(buffer));
}

void Executable::plan_staging() {
  std::int64_t bytes = 0;
  const auto stage = [&](int buffer) {
    if (buffer < 0 || !staged_.emplace(buffer, bytes).second) return;
    const std::int64_t size = program_.buffers[static_cast<std::size_t>(buffer)].bytes;
    bytes += padded(size);
  };
  for (const auto& [node, buffer] : program_.placeholders) stage(buffer);
  for (const int buffer : program_.fetches) stage(buffer);
  for (const Instruction& instruction : program_.instructions) {
    if (applies_gradients(instruction)) stage(instruction.inputs[0]);  // the rate: exchanges may want it
  }
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

// Cut where gradients are complete that leave the device, and where something has to come back before it goes on.
void Executable::plan_pieces() {
  pieces_.clear();
  if (exchange_ == nullptr || exchanges_on_device()) {
    pieces_.emplace_back().items = items_;
    return;
  }
  Piece piece;
  const auto cut = [&] {
    if (!piece.items.empty() || piece.bucket) pieces_.push_back(std::move(piece));
    piece = {};
  };
  std::vector<bool> is_there(bucket_updates_.size(), false);
  std::size_t bucket = 0;
  for (const int item : items_) {
    const auto index = static_cast<std::size_t>(item);
    if (bucket < bucket_updates_.size() && index == bucket_updates_[bucket]) {
      is_there[bucket] = false;  // new values come
      piece.bucket = bucket++;
      cut();
      continue;
    }
    std::vector<std::size_t> missing;
    for (const std::size_t used : used_buckets_[index]) {
      if (is_served() && !is_there[used]) missing.push_back(used);
      is_there[used] = true;
    }
    const bool waits = !missing.empty() || (!is_served() && needs_updates_[index] && !piece.needs_updates);
    if (waits) cut();
    piece.awaits.insert(piece.awaits.end(), missing.begin(), missing.end());
    piece.needs_updates = piece.needs_updates || (!is_served() && needs_updates_[index]);
    piece.items.push_back(item);
  }
  cut();
}

// While instructions are timed they run one after the other.
void Executable::set_lane(int lane) const { device_.set_lane(profiling_ ? 0 : lane); }

// What follows in the first lane finds the work of another one done.
void Executable::join_lane(int lane) const {
  set_lane(lane);
  const int end = device_.signal();
  set_lane(0);
  device_.wait_for(end);
}

void Executable::give(std::size_t index) {
  if (!profiling_) return run_kernel(index);
  const int mark = kFirstInstructionMark + 2 * static_cast<int>(marked_.size());
  device_.mark(mark);
  run_kernel(index);
  device_.mark(mark + 1);
  marked_.push_back(index);
}

void Executable::give_items(const std::vector<int>& items) {
  std::vector<int> signal_of(program_.instructions.size(), -1);
  std::set<int> lanes;
  for (const int item : items) lanes.insert(lane_of_[static_cast<std::size_t>(item)]);
  lanes.erase(0);
  const int begin = device_.signal();
  for (const int lane : lanes) {
    set_lane(lane);
    device_.wait_for(begin);
  }
  std::size_t bucket = 0;
  for (const int item : items) {
    const auto index = static_cast<std::size_t>(item);
    set_lane(lane_of_[index]);
    for (const int earlier : waits_for_[index]) {
      const int signal = signal_of[static_cast<std::size_t>(earlier)];
      if (signal >= 0) device_.wait_for(signal);  // else it was in an earlier piece
    }
    const bool exchanged = exchanges_on_device() && applies_gradients(program_.instructions[index]);
    if (exchanges_on_device() && needs_updates_[index]) {
      set_lane(device_.inward_lane());
      const int updated = device_.signal();
      set_lane(lane_of_[index]);
      device_.wait_for(updated);
    }
    if (!exchanged) give(index);
    if (signals_[index] || exchanged) signal_of[index] = device_.signal();
    if (exchanged) give_exchanged(bucket++, signal_of[index]);
  }
  for (const int lane : lanes) join_lane(lane);
  if (bucket > 0) join_lane(device_.inward_lane());
  set_lane(0);
}

void Executable::run_piece(Piece& piece) {
  if (piece.items.empty()) return;
  const perf::ScopedSpan span(main_track(), trace_.piece);
  // Libraries load and compile what they need in a first run, which cannot be recorded.
  if (profiling_ || !warmed_up_) return give_items(piece.items);
  if (!piece.recording) piece.recording = device_.record([&] { give_items(piece.items); });
  piece.recording ? piece.recording->replay() : give_items(piece.items);
}

void Executable::add_marked_times() {
  for (std::size_t i = 0; i < marked_.size(); ++i) {
    const int mark = kFirstInstructionMark + 2 * static_cast<int>(i);
    profile_.seconds[marked_[i]] += device_.seconds_between(mark, mark + 1);
  }
  marked_.clear();
  ++profile_.runs;
}

void Executable::input_changed(Tensor placeholder) {
  if (device_.is_host()) return;
  const int buffer = buffer_of(placeholder);
  if (read_inputs_ >= 0) device_.wait_on_host(read_inputs_);
  sent_.buffers.erase(buffer);
  changed_inputs_.insert(buffer);
}

void Executable::send_inputs() {
  if (device_.is_host() || !warmed_up_) return;  // a first run finds nothing to go on beside
  if (sent_.places.empty()) {
    std::int64_t bytes = 0;
    for (const auto& [node, buffer] : program_.placeholders) {
      sent_.places.emplace(buffer, bytes);
      bytes += padded(program_.buffers[static_cast<std::size_t>(buffer)].bytes);
    }
    sent_.memory = device_.allocate(bytes, "the next batch");
  }
  device_.set_lane(device_.input_lane());
  if (sent_.taken >= 0) device_.wait_for(sent_.taken);
  for (const int buffer : changed_inputs_) {
    device_.upload(sent_.memory.at(sent_.places.at(buffer)), host_address(buffer),
                   program_.buffers[static_cast<std::size_t>(buffer)].bytes);
  }
  sent_.arrived = read_inputs_ = device_.signal();
  device_.set_lane(0);
  sent_.buffers.merge(changed_inputs_);
  changed_inputs_.clear();
}

void Executable::take_inputs() {
  if (!sent_.buffers.empty()) device_.wait_for(sent_.arrived);
  for (const int buffer : sent_.buffers) {
    device_.copy(address(buffer), sent_.memory.at(sent_.places.at(buffer)),
                 program_.buffers[static_cast<std::size_t>(buffer)].bytes);
  }
  for (const int buffer : changed_inputs_) {
    device_.upload(address(buffer), host_address(buffer), program_.buffers[static_cast<std::size_t>(buffer)].bytes);
  }
  if (!sent_.buffers.empty() || !changed_inputs_.empty()) sent_.taken = read_inputs_ = device_.signal();
  sent_.buffers.clear();
  changed_inputs_.clear();
}

double Executable::wait() {
  if (device_.is_host()) return 0;
  {
    const perf::ScopedSpan span(main_track(), trace_.wait_for_device);
    device_.synchronize();
  }
  read_inputs_ = sent_.taken = -1;
  const double seconds = device_.seconds_between(kBeginMark, kEndMark);
  add_device_span(seconds);
  return seconds;
}

void Executable::forget_exchange() noexcept {
  pieces_.clear();
  exchange_ = nullptr;
}

// The device tells how long its run took but not when; that it has ended is known now.
void Executable::add_device_span(double seconds) const {
  if (trace_.device == nullptr || !trace_.device->is_recording()) return;
  const std::int64_t end = perf::steady_nanoseconds();
  trace_.device->add({.begin = end - static_cast<std::int64_t>(1e9 * seconds), .end = end, .label = trace_.device_run});
}

void Executable::run_on_device() {
  device_.mark(kBeginMark);
  take_inputs();
  device_.set_context(context_);
  run_once_instructions();
  if (!is_served()) store_.put_served_values();
  if (pieces_.empty()) plan_pieces();
  collected_ = exchange_ != nullptr && exchange_->only_collects();
  if (exchange_ == nullptr) {
    run_piece(pieces_.front());
  } else if (exchange_->works_on_device()) {
    exchange_times_ = {};
    exchange_->begin_step(context_.step);
    run_piece(pieces_.front());
    exchange_->end_step();
  } else {
    run_with_staged_exchange();
  }
  warmed_up_ = true;
  if (profiling_) add_marked_times();
  for (const int buffer : program_.fetches) {
    if (buffer < 0) continue;
    device_.download(host_address(buffer), address(buffer), program_.buffers[static_cast<std::size_t>(buffer)].bytes);
  }
  device_.mark(kEndMark);
}

}  // namespace trireme
