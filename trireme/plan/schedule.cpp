#include "trireme/plan/schedule.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "trireme/base/error.hpp"

namespace trireme {
namespace {

// Treats shadows as their variables, with which they are written.
class Scheduler {
 public:
  Scheduler(const Program& program, const GradientOptions& options, const RunPlace& place, bool collects)
      : program_(program), options_(options), place_(place), collects_(collects) {
    for (int i = 0; i < std::ssize(program.instructions); ++i) {
      if (applies_gradients(instruction(i))) schedule_.updates.push_back(i);
    }
    for (std::size_t bucket = 0; bucket < schedule_.updates.size(); ++bucket) {
      const Instruction& update = instruction(schedule_.updates[bucket]);
      if (options.changes_step() && update.scratch >= 0) {
        fail(ErrorKind::failed, "'{}' needs scratch memory and cannot be delayed; this backend cannot train replicas",
             update.name);
      }
      for (std::size_t at = 1; at < update.inputs.size(); at += 2) {
        bucket_of_[buffer(update.inputs[at]).variable] = static_cast<int>(bucket);
      }
    }
    find_readers_of_gradients();
    check_options();
  }

  Schedule run() {
    for (int i = 0; i < std::ssize(program_.instructions); ++i) {
      if (instruction(i).once) continue;
      if (instruction(i).transfer.kind != Transfer::Kind::none) {
        add(instruction(i).transfer.kind == Transfer::Kind::wait ? Action::end : Action::begin, i);
        continue;
      }
      if (instruction(i).collects) {
        collect(bucket_of_.at(buffer(instruction(i).inputs[1]).variable));
        continue;
      }
      if (after_gradients_.contains(i)) {
        if (collects_) continue;
        if (options_.changes_step()) finish_gradients_for(i);
      }
      if (applies_gradients(instruction(i))) {
        add_update(i);
      } else {
        add_instruction(i);
      }
    }
    // Give the device all its work before waiting for any of it.
    if (!place_.on_host) start_downloaded();
    start_transformed();
    finish_all();
    if (served()) {
      for (const int id : program_.fetches) wait_for_values(id);
    }
    return std::move(schedule_);
  }

 private:
  const Instruction& instruction(int index) const { return program_.instructions[index]; }
  const Buffer& buffer(int id) const { return program_.buffers[id]; }
  bool shards() const { return options_.exchange == Exchange::shard; }
  bool served() const { return is_served(options_.exchange); }
  bool on_device_alone() const { return options_.exchange == Exchange::reduce_on_device; }
  // Gradients are processed in host memory, separate from the device's.
  bool staged() const { return !place_.on_host && options_.changes_step() && !on_device_alone(); }
  bool exchanges() const { return options_.exchange != Exchange::none && !collects_; }
  int buckets() const { return static_cast<int>(schedule_.updates.size()); }

  void add(Action action, int index = 0) { schedule_.steps.push_back({action, index}); }

  // Instructions that inspect whole gradients (are they finite?) and their dependents: need exchanged gradients.
  void find_readers_of_gradients() {
    std::set<int> buffers;  // that they write
    for (int i = 0; i < std::ssize(program_.instructions); ++i) {
      const Instruction& reader = instruction(i);
      if (reader.node == nullptr || applies_gradients(reader)) continue;
      const bool reads_all = reader.node->as<op::UnscaledRates>() != nullptr;
      const bool depends =
          std::any_of(reader.inputs.begin(), reader.inputs.end(), [&](int id) { return buffers.contains(id); });
      if (!reads_all && !depends) continue;
      after_gradients_.insert(i);
      buffers.insert(reader.outputs.begin(), reader.outputs.end());
    }
  }

  // Combinations that are mathematically wrong or impossible with the gradients' memory.
  void check_options() const {
    if (options_.exchange != Exchange::none && schedule_.updates.empty()) {
      bad_input("a program without updates has no gradients to exchange; set the exchange on the program that trains");
    }
    if (options_.exchange == Exchange::serve && options_.transforms()) {
      bad_input(
          "parameter servers apply the mean of all workers' gradients, and each server has only a part of it, so it "
          "cannot be clipped (--clip-norm) or scaled by layer (--lars); use --async or --variable-update all_reduce");
    }
    if (on_device_alone() && (options_.accumulate > 1 || options_.transforms())) {
      bad_input(
          "gradients that devices reduce among themselves cannot be accumulated, clipped or scaled; reduce them "
          "in the hosts' memory");
    }
    if (shards() && (!place_.on_host || !after_gradients_.empty())) {
      bad_input("an optimizer state divided among replicas needs a CPU, and a loss that is not scaled");
    }
    if (!after_gradients_.empty() && served()) {
      bad_input(
          "parameter servers cannot train with a scaled loss: whether an update is skipped depends on all gradients, "
          "and each server has only a part of them; use --variable-update all_reduce or --precision bf16");
    }
    if (!after_gradients_.empty() && place_.groups > 1) {
      bad_input("a scaled loss cannot be combined with a batch that is split over {} groups of cores; use one group",
                place_.groups);
    }
  }

  // Before an instruction that inspects gradients: it comes after all their writers, so all are complete.
  void finish_gradients_for(int index) {
    if (!instruction(index).node->as<op::UnscaledRates>()) return;
    while (started_ < buckets()) complete(started_);
    if (!place_.on_host) start_downloaded();
    wait_for_gradients();
  }

  void add_update(int index) {
    const int bucket = bucket_of_.at(buffer(instruction(index).inputs[1]).variable);
    if (!options_.changes_step()) {
      if (place_.groups > 1) barrier();
      add(Action::compute, index);
      note_writes(index);
      return;
    }
    if (bucket >= started_) complete(bucket);
    if (collects_ || served()) return;
    updated_.insert(bucket);
    if (on_device_alone()) add(Action::compute, index);
  }

  // A micro-batch's gradients of a bucket are complete, but others follow.
  void collect(int bucket) {
    if (place_.on_host) return add(Action::accumulate, bucket);
    download(bucket);
    collected_.insert(bucket);
  }

  // The host adds up what it got while the device makes the next, at the latest when that arrives.
  void download(int bucket) {
    if (collected_.erase(bucket) > 0) add(Action::accumulate, bucket);
    add(Action::download, bucket);
  }

  // This replica's gradients of a bucket are complete.
  void complete(int bucket) {
    started_ = bucket + 1;
    if (place_.groups > 1) {
      barrier();
      add(Action::merge, bucket);
      barrier();
    }
    if (staged()) {
      download(bucket);
      downloaded_.push_back(bucket);
      return;
    }
    start(bucket);
  }

  void start(int bucket) {
    if (options_.accumulate > 1 && place_.group == 0) add(Action::accumulate, bucket);
    if (!exchanges()) return;
    if (served() && options_.transforms()) {
      held_.push_back(bucket);
    } else {
      begin_transfer(bucket);
    }
  }

  // The first group does it for all; all know that the values in place are old then.
  void begin_transfer(int bucket) {
    waited_.erase(bucket);
    if (place_.group > 0) return;
    if (!shards() || options_.transforms()) return add(Action::start, bucket);
    add(Action::scatter, bucket);
    add(Action::gather, bucket);
  }

  // If servers apply each replica's gradients, the replica transforms its own before sending.
  void start_transformed() {
    if (held_.empty()) return;
    if (place_.group == 0) add(Action::transform);
    for (const int bucket : held_) begin_transfer(bucket);
    held_.clear();
  }

  void start_downloaded() {
    for (const int bucket : downloaded_) start(bucket);
    downloaded_.clear();
  }

  void add_instruction(int index) {
    const Instruction& next = instruction(index);
    if (served()) {
      for (const int id : next.inputs) wait_for_values(id);
    } else if (options_.changes_step() && !collects_ && uses_updated(next)) {
      if (!place_.on_host) start_downloaded();
      finish_all();
    }
    barrier_before(index);
    // One group updates averages of values that are equal in all groups.
    if (!next.update || place_.group == 0) add(Action::compute, index);
  }

  bool uses_updated(const Instruction& next) const {
    return std::any_of(next.inputs.begin(), next.inputs.end(), [&](int id) {
      const Buffer& used = buffer(id);
      if (!used.is_of_variable() && used.kind != MemoryKind::gradient) return false;
      const auto found = bucket_of_.find(used.variable);
      return found != bucket_of_.end() && updated_.contains(found->second);
    });
  }

  void wait_for_values(int id) {
    if (id < 0 || !buffer(id).is_of_variable()) return;
    const auto found = bucket_of_.find(buffer(id).variable);
    if (found == bucket_of_.end()) return;
    if (std::find(held_.begin(), held_.end(), found->second) != held_.end()) {
      if (started_ < buckets()) {
        fail(ErrorKind::failed, "'{}' is needed before all gradients are available for clipping or scaling",
             instruction(schedule_.updates[found->second]).name);
      }
      start_transformed();
    }
    if (!waited_.insert(found->second).second) return;
    if (!place_.on_host) start_downloaded();
    if (place_.group == 0) add(Action::wait, found->second);
    if (place_.groups > 1) barrier();
    if (!place_.on_host) add(Action::upload, found->second);
  }

  // Gradients of all buckets become what is applied.
  void wait_for_gradients() {
    if (waited_for_all_) return;
    waited_for_all_ = true;
    if (started_ < buckets()) {
      fail(ErrorKind::failed, "'{}' is needed before all gradients are available for clipping or scaling",
           instruction(schedule_.updates[started_]).name);
    }
    for (int bucket = 0; bucket < buckets(); ++bucket) {
      if (exchanges() && place_.group == 0) add(Action::wait, bucket);
    }
    if (place_.groups > 1) barrier();
    if (options_.transforms() && place_.group == 0) add(Action::transform);
    if (options_.transforms() && place_.groups > 1) barrier();
    for (int bucket = 0; staged() && bucket < buckets(); ++bucket) add(Action::upload, bucket);
    for (int bucket = 0; shards() && place_.group == 0 && bucket < buckets(); ++bucket) add(Action::gather, bucket);
  }

  void finish_all() {
    if (collects_ || served() || !options_.changes_step()) return;
    if (on_device_alone()) {  // updates run beside backward: what follows waits for them
      if (!updated_.empty()) add(Action::wait, started_ - 1);
      updated_.clear();
      return;
    }
    if (options_.transforms() && !updated_.empty()) wait_for_gradients();
    for (; finished_ < buckets() && updated_.contains(finished_); ++finished_) finish(finished_);
  }

  void finish(int bucket) {
    const int first = static_cast<int>(schedule_.steps.size());
    if (!waited_for_all_ || shards()) {
      if (exchanges() && place_.group == 0) add(Action::wait, bucket);
      if (place_.groups > 1) barrier();
      if (staged()) add(Action::upload, bucket);
    }
    if (shards()) return;  // the new values have come
    add(Action::compute, schedule_.updates[bucket]);
    note_writes(schedule_.updates[bucket]);
    // Groups must decide alike; what was waited for is there.
    if (exchanges() && !waited_for_all_ && place_.groups == 1) {
      schedule_.finishes.push_back({bucket, first, static_cast<int>(schedule_.steps.size())});
    }
  }

  // All groups share the variables. They wait for each other before applying gradients, which come from all; before
  // writing a variable that a slower group may still read; and before reading what one group has written.
  void barrier_before(int index) {
    if (place_.groups == 1) return;
    const auto [reads, writes] = variables_of(index);
    const auto among = [](const std::set<NodeId>& set) { return [&set](NodeId id) { return set.contains(id); }; };
    if (std::any_of(reads.begin(), reads.end(), among(written_)) ||
        std::any_of(writes.begin(), writes.end(), among(read_)) ||
        std::any_of(writes.begin(), writes.end(), among(written_))) {
      barrier();
    }
    note_writes(index);
  }

  void barrier() {
    add(Action::barrier);
    read_.clear();
    written_.clear();
  }

  void note_writes(int index) {
    const auto [reads, writes] = variables_of(index);
    read_.insert(reads.begin(), reads.end());
    written_.insert(writes.begin(), writes.end());
  }

  std::array<std::vector<NodeId>, 2> variables_of(int index) const {
    const Instruction& of = instruction(index);
    std::vector<int> targets;
    if (of.update) targets = written_inputs(of.node->op, static_cast<int>(of.inputs.size()));
    std::array<std::vector<NodeId>, 2> both;  // read; written
    for (std::size_t at = 0; at < of.inputs.size(); ++at) {
      const Buffer& used = buffer(of.inputs[at]);
      if (used.kind != MemoryKind::variable) continue;
      const bool target = std::find(targets.begin(), targets.end(), static_cast<int>(at)) != targets.end();
      both[target ? 1 : 0].push_back(used.variable);
    }
    return both;
  }

  const Program& program_;
  const GradientOptions& options_;
  RunPlace place_;
  bool collects_;
  Schedule schedule_;
  std::map<NodeId, int> bucket_of_;
  std::set<int> after_gradients_;
  std::set<int> updated_;        // buckets whose update comes earlier in the program
  std::vector<int> downloaded_;  // buckets that the host still has to process
  std::set<int> collected_;      // buckets of which the host still has to add up a micro-batch's gradients
  std::vector<int> held_;        // buckets that leave when all are transformed
  std::set<int> waited_;         // buckets whose new values are in place, if served
  int started_ = 0;              // buckets that are complete
  int finished_ = 0;             // buckets whose update is in the schedule
  bool waited_for_all_ = false;
  std::set<NodeId> read_, written_;  // by this group since the last barrier
};

}  // namespace

std::string_view to_string(Action action) {
  constexpr std::array<std::string_view, 13> kNames{"compute",   "barrier", "merge",  "accumulate", "download",
                                                    "start",     "scatter", "gather", "wait",       "upload",
                                                    "transform", "begin",   "end"};
  return kNames[static_cast<std::size_t>(action)];
}

bool applies_gradients(const Instruction& instruction) {
  return instruction.node != nullptr && !instruction.collects && instruction.node->as<op::ApplyGradients>() != nullptr;
}

Schedule schedule_run(const Program& program, const GradientOptions& options, const RunPlace& place, bool collects) {
  return Scheduler(program, options, place, collects).run();
}

}  // namespace trireme
