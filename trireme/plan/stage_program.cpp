// keep_stage(): the program of a stage.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "trireme/base/error.hpp"
#include "trireme/base/hash.hpp"
#include "trireme/plan/schedule.hpp"
#include "trireme/plan/send_ends.hpp"
#include "trireme/plan/stages.hpp"

namespace trireme {
namespace {

class StageProgram {
 public:
  StageProgram(const Program& whole, const InPlacePairs& in_place, const Parts& parts, const StageOptions& options)
      : whole_(whole), in_place_(in_place), options_(options), order_(options.order) {
    find_places(parts);
    check_variables();
    find_transfers();
    find_tasks();
    set_hash();
    for (int m = options.replica; m < order_.shape.micro_batches; m += replicas(options.stage)) own_.push_back(m);
  }

  std::pair<Program, InPlacePairs> run() {
    for (std::size_t i = 0; i < whole_.instructions.size(); ++i) {
      if (place(i).part < 0 && is_needed(i)) add_copy(i, {.part = options_.stage}, false);
    }
    std::vector<Block> blocks;
    for (const PipelineOrder::Task& task : tasks_of(options_.stage, options_.replica)) blocks.push_back(block_of(task));
    const auto ends = ends_of_sends(moves_of_all());
    const auto& own_ends = ends[index(order_.shape.worker_of(options_.stage, options_.replica))];
    // A receive is posted one task early; the end of a send is waited for one task late, or later.
    for (std::size_t at = 0; at < blocks.size(); ++at) {
      if (at == 0) add_receives(blocks[0]);
      if (at + 1 < blocks.size()) add_receives(blocks[at + 1]);
      for (const int number : blocks[at].arrivals) add_transfer(Transfer::Kind::wait, number);
      for (const auto& [instruction, sends] : blocks[at].work) {
        add_copy(instruction, blocks[at].task, is_last(instruction, blocks[at].task.micro_batch));
        for (const int number : sends) add_transfer(Transfer::Kind::send, number);
      }
      for (const int move : own_ends[at]) wait_for_send(move);
    }
    while (!sends_.empty()) wait_for_send(sends_.begin()->first);
    finish();
    return {std::move(program_), std::move(new_in_place_)};
  }

 private:
  using Kind = PipelineTask;
  struct Place {
    int part = -1;
    Phase phase = Phase::forward;
  };
  using TaskKind = std::pair<int, Kind>;  // of a part
  struct Block {
    PipelineOrder::Task task;
    std::vector<int> arrivals;                                        // transfers
    std::vector<std::pair<std::size_t, std::vector<int>>> work = {};  // instructions, and what is sent after each
  };
  struct Message {  // a tensor of a micro-batch on its way
    int peer = 0, tag = 0;
    int buffer = -1;  // of the new program
    std::string name;
  };

  static std::size_t index(int at) { return static_cast<std::size_t>(at); }
  const Place& place(std::size_t instruction) const { return places_[instruction]; }
  int stage_of(std::size_t instruction) const {
    return place(instruction).part < 0 ? -1 : order_.stage_of(place(instruction).part);
  }
  int replicas(int stage) const { return order_.shape.replicas_of(stage); }

  void find_places(const Parts& parts) {
    const auto& instructions = whole_.instructions;
    places_.resize(instructions.size());
    producer_.assign(whole_.buffers.size(), -1);
    std::vector<std::vector<std::size_t>> consumers(whole_.buffers.size());
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      for (const int id : instructions[i].outputs) producer_[index(id)] = static_cast<int>(i);
      for (const int id : instructions[i].inputs) consumers[index(id)].push_back(i);
      if (instructions[i].node == nullptr) continue;
      const Parts::Place& own = parts.nodes[index(instructions[i].node->id)];
      places_[i] = {own.part, own.phase};
    }
    // Copies in another format are made where they are first needed.
    for (std::size_t i = instructions.size(); i-- > 0;) {
      if (instructions[i].node != nullptr) continue;
      const int source = instructions[i].inputs[0];
      if (producer_[index(source)] >= 0) places_[i] = places_[index(producer_[index(source)])];
      bool found = false;
      for (const std::size_t reader : consumers[index(instructions[i].outputs[0])]) {
        if (place(reader).part < 0) continue;
        if (!found || comes_before(place(reader), places_[i])) places_[i] = place(reader);
        found = true;
      }
      if (instructions[i].once) places_[i].part = -1;
    }
  }

  // In the work on a micro-batch: forward from the first part to the last, then back.
  static bool comes_before(const Place& a, const Place& b) {
    const auto order = [](const Place& place) {
      const bool is_forward = place.phase == Phase::forward;
      return std::tuple(!is_forward, is_forward ? place.part : -place.part, place.phase);
    };
    return order(a) < order(b);
  }

  // A stage has no variables and gradients but its own.
  void check_variables() const {
    std::map<NodeId, std::size_t> users;
    for (std::size_t i = 0; i < whole_.instructions.size(); ++i) {
      const Instruction& user = whole_.instructions[i];
      if (place(i).part < 0) continue;
      for (const auto* list : {&user.inputs, &user.outputs}) {
        for (const int id : *list) {
          const NodeId variable = whole_.buffers[index(id)].variable;
          if (variable < 0) continue;
          const auto [first, is_new] = users.try_emplace(variable, i);
          if (is_new || place(first->second).part == place(i).part) continue;
          fail(ErrorKind::failed, "'{}' and '{}' use one variable, but are in the parts {} and {} of the pipeline",
               whole_.instructions[first->second].name, user.name, place(first->second).part, place(i).part);
        }
      }
    }
  }

  void set_hash() {
    std::string text;
    for (std::size_t i = 0; i < whole_.instructions.size(); ++i) {
      const Instruction& each = whole_.instructions[i];
      text += fmt::format("{} {} {}", each.name, each.operation, place(i).part);
      for (const int id : each.outputs) text += fmt::format(" {}", whole_.buffers[index(id)].desc.format().name());
      text += '\n';
    }
    program_.network_hash = hash_bytes(std::as_bytes(std::span(text)));
  }

  bool has_copies(int buffer) const {  // one per micro-batch
    const Buffer& of = whole_.buffers[index(buffer)];
    if (of.kind != MemoryKind::arena) return false;
    const int producer = producer_[index(buffer)];
    return producer >= 0 ? place(index(producer)).part >= 0 : per_micro_batch_.contains(buffer);
  }

  // Numbers are the same in all stages: they are the messages' tags.
  void find_transfers() {
    const auto& instructions = whole_.instructions;
    program_.cut_bytes.assign(options_.cuts.size(), 0);
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const bool applies = applies_gradients(instructions[i]);
      for (const int id : instructions[i].inputs) {
        const int producer = producer_[index(id)];
        if (producer < 0 && !applies) {
          for (const auto& [node, placeholder] : whole_.placeholders) {
            if (placeholder == id) per_micro_batch_.insert(id);
          }
        }
        if (producer < 0 || place(index(producer)).part < 0 || place(i).part < 0) continue;
        const int from = stage_of(index(producer)), to = stage_of(i);
        if (from == to || !has_copies(id)) continue;
        if (tags_.try_emplace({id, to}, static_cast<int>(tags_.size())).second) {
          long_.insert({id, to});
          add_crossing(id, place(index(producer)).part, place(i).part);
        }
        const Place& made = place(index(producer));
        const Place arrival{place(i).part, made.phase};
        if (!comes_before(made, arrival) || comes_before(place(i), arrival)) continue;
        arrivals_[task_of(arrival)].insert(id);
        long_.erase({id, to});
      }
    }
    if (static_cast<int>(tags_.size()) > kMostTransfers) {
      bad_input("{} tensors cross the cuts of this pipeline; {} can. Cut where fewer do", tags_.size(), kMostTransfers);
    }
  }

  // Of each micro-batch, as far as the first part that reads it there.
  void add_crossing(int buffer, int from, int to) {
    for (int cut = std::min(from, to); cut < std::max(from, to); ++cut)
      program_.cut_bytes[index(cut)] += whole_.buffers[index(buffer)].bytes * order_.shape.micro_batches;
  }

  // Results of constants alone are made in every stage that uses them.
  bool is_needed(std::size_t constant) const {
    const auto& instructions = whole_.instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      if (place(i).part >= 0 ? stage_of(i) != options_.stage : !is_needed_later(i, constant)) continue;
      for (const int id : instructions[i].inputs) {
        if (producer_[index(id)] == static_cast<int>(constant)) return true;
      }
    }
    return false;
  }
  bool is_needed_later(std::size_t instruction, std::size_t than) const {
    return instruction > than && is_needed(instruction);
  }

  // By task, whatever the micro-batch.
  void find_tasks() {
    for (std::size_t i = 0; i < whole_.instructions.size(); ++i) {
      if (place(i).part >= 0) of_task_[task_of(place(i))].push_back(i);
    }
  }
  TaskKind task_of(const Place& place) const {
    const bool joins_backward = !order_.splits_backward && place.phase == Phase::weights;
    return {place.part, joins_backward ? Kind::backward : static_cast<Kind>(place.phase)};
  }
  const std::vector<std::size_t>& instructions_of(const PipelineOrder::Task& task) {
    return of_task_[{task.part, task.kind}];
  }
  std::vector<PipelineOrder::Task> tasks_of(int stage, int replica) const {
    std::vector<PipelineOrder::Task> tasks = order_.tasks[index(stage)];
    std::erase_if(tasks, [&](const auto& task) { return task.micro_batch % replicas(stage) != replica; });
    return tasks;
  }

  // What first arrives for a task, in the order in which other stages make it. What another stage's task makes arrives
  // with the task that it leads to, even if it is needed later, so that messages from one stage to another are received
  // in the order in which they are sent. arrived: (buffer, micro-batch) of its worker.
  std::vector<int> arrivals_of(const PipelineOrder::Task& task, std::set<std::pair<int, int>>& arrived) {
    std::set<int> all = arrivals_[{task.part, task.kind}];
    for (const std::size_t i : instructions_of(task)) {
      for (const int id : whole_.instructions[i].inputs) {
        if (tags_.contains({id, order_.stage_of(task.part)})) all.insert(id);
      }
    }
    std::vector<int> ids;
    for (const int id : all) {
      if (arrived.insert({id, task.micro_batch}).second) ids.push_back(id);
    }
    std::ranges::sort(ids, {}, [this](int id) { return std::pair(producer_[index(id)], id); });
    return ids;
  }
  // What other stages read of its results, and which.
  std::vector<std::pair<int, int>> sends_of(std::size_t instruction) const {
    std::vector<std::pair<int, int>> sends;
    for (const int id : whole_.instructions[instruction].outputs) {
      for (auto tag = tags_.lower_bound({id, 0}); tag != tags_.end() && tag->first.first == id; ++tag)
        sends.push_back(tag->first);
    }
    return sends;
  }
  int move_number(std::pair<int, int> tensor, int micro_batch) const {
    return tags_.at(tensor) * order_.shape.micro_batches + micro_batch;
  }
  std::vector<WorkerMoves> moves_of_all() {
    std::vector<WorkerMoves> all;
    for (int stage = 0; stage < order_.shape.stages; ++stage) {
      for (int replica = 0; replica < replicas(stage); ++replica) all.push_back(moves_of(stage, replica));
    }
    return all;
  }
  WorkerMoves moves_of(int stage, int replica) {
    WorkerMoves moves;
    std::set<std::pair<int, int>> arrived;  // (buffer, micro-batch)
    for (const PipelineOrder::Task& task : tasks_of(stage, replica)) {
      const int m = task.micro_batch;
      const auto move = [&](std::pair<int, int> tensor) {
        const int from = stage_of(index(producer_[index(tensor.first)]));
        return Move{.number = move_number(tensor, m),
                    .from = order_.shape.worker_of(from, m),
                    .to = order_.shape.worker_of(tensor.second, m)};
      };
      TaskMoves& of_task = moves.emplace_back();
      for (const int id : arrivals_of(task, arrived)) of_task.arrivals.push_back(move({id, stage}));
      for (const std::size_t i : instructions_of(task)) {
        for (const auto& tensor : sends_of(i))
          (long_.contains(tensor) ? of_task.long_sends : of_task.sends).push_back(move(tensor));
      }
    }
    return moves;
  }

  Block block_of(const PipelineOrder::Task& task) {
    const int m = task.micro_batch;
    Block block{.task = task, .arrivals = {}};
    for (const int id : arrivals_of(task, arrived_))
      block.arrivals.push_back(message(id, m, options_.stage, stage_of(index(producer_[index(id)]))));
    for (const std::size_t i : instructions_of(task)) {
      std::vector<int> sends;
      for (const auto& tensor : sends_of(i)) {
        sends.push_back(message(tensor.first, m, tensor.second, tensor.second));
        sends_.emplace(move_number(tensor, m), sends.back());
      }
      block.work.emplace_back(i, std::move(sends));
    }
    return block;
  }

  int message(int buffer, int micro_batch, int to, int peer_stage) {
    messages_.push_back({.peer = order_.shape.worker_of(peer_stage, micro_batch),
                         .tag = tags_.at({buffer, to}),
                         .buffer = copy_of(buffer, micro_batch),
                         .name = fmt::format("{} of micro-batch {}", whole_.buffers[index(buffer)].name, micro_batch)});
    return static_cast<int>(messages_.size()) - 1;
  }

  int copy_of(int buffer, int micro_batch) {
    if (buffer < 0) return -1;
    const int of = has_copies(buffer) ? micro_batch : 0;
    auto [found, is_new] = copies_.try_emplace({buffer, of}, -1);
    if (is_new) {
      found->second = static_cast<int>(buffers_.size());
      buffers_.push_back(whole_.buffers[index(buffer)]);
    }
    return found->second;
  }

  // The last micro-batch of this process: its gradients complete the sum.
  bool is_last(std::size_t instruction, int micro_batch) const {
    return applies_gradients(whole_.instructions[instruction]) && micro_batch == own_.back();
  }

  void add_copy(std::size_t at, const PipelineOrder::Task& task, bool is_update) {
    const Instruction& from = whole_.instructions[at];
    const int micro_batch = task.micro_batch;
    Instruction copy;
    copy.name = from.name;
    copy.operation = from.operation;
    copy.implementation = from.implementation;
    copy.shared_bytes = from.shared_bytes;
    copy.cost = from.cost;
    copy.once = from.once;
    copy.update = from.update;
    copy.recomputed = from.recomputed;
    copy.node = from.node;
    copy.micro_batch = micro_batch;
    copy.task = task.kind;
    copy.part = task.part;
    for (const int id : from.inputs) copy.inputs.push_back(copy_of(id, micro_batch));
    for (const int id : from.outputs) copy.outputs.push_back(copy_of(id, micro_batch));
    if (from.scratch >= 0) {
      copy.scratch = static_cast<int>(buffers_.size());
      buffers_.push_back(whole_.buffers[index(from.scratch)]);
    }
    if (applies_gradients(from) && !is_update) {  // only adds to the sum
      copy.operation = "accumulate";
      copy.collects = true;
      copy.update = false;
      copy.scratch = -1;
      copy.cost = {};
    } else {
      copy.kernel = from.kernel->another();
    }
    instructions_.push_back(std::move(copy));
    new_in_place_.push_back(in_place_[at]);
  }

  void add_receives(const Block& block) {
    for (const int number : block.arrivals) add_transfer(Transfer::Kind::receive, number);
  }
  void wait_for_send(int move) {
    const auto send = sends_.find(move);
    add_transfer(Transfer::Kind::wait, send->second);
    sends_.erase(send);
  }

  void add_transfer(Transfer::Kind kind, int number) {
    const Message& message = messages_[index(number)];
    Instruction added;
    added.name = message.name;
    added.operation = kind == Transfer::Kind::send ? "send" : kind == Transfer::Kind::receive ? "receive" : "wait";
    added.transfer = {.kind = kind, .number = number, .peer = message.peer, .tag = message.tag};
    // A send reads until its end is waited for; a receive writes from its start on.
    (kind == Transfer::Kind::receive ? added.outputs : added.inputs).push_back(message.buffer);
    added.cost.bytes = kind == Transfer::Kind::wait ? 0 : static_cast<double>(buffers_[index(message.buffer)].bytes);
    instructions_.push_back(std::move(added));
    new_in_place_.emplace_back();
  }

  // A placeholder's copies are adjacent: they are written as one.
  void add_placeholders() {
    std::unordered_map<NodeId, int> placeholders;
    for (const auto& [node, id] : whole_.placeholders) {
      if (!per_micro_batch_.contains(id)) {
        if (copies_.contains({id, 0})) placeholders[node] = copies_.at({id, 0});
        continue;
      }
      const auto has_copy = [this, buffer = id](int m) { return copies_.contains({buffer, m}); };
      const bool is_used = std::any_of(own_.begin(), own_.end(), has_copy);
      if (!is_used) continue;
      Buffer all = whole_.buffers[index(id)];
      const std::int64_t bytes = all.bytes;
      all.desc.shape[0] *= static_cast<std::int64_t>(own_.size());
      all.bytes = all.desc.bytes();
      const int parent = static_cast<int>(buffers_.size());
      for (std::size_t k = 0; k < own_.size(); ++k) {
        const int copy = copy_of(id, own_[k]);
        buffers_[index(copy)].shares = parent;
        buffers_[index(copy)].within = static_cast<std::int64_t>(k) * bytes;
      }
      // copy_of() may have added some
      if (static_cast<int>(buffers_.size()) != parent) {
        for (const int m : own_) buffers_[index(copies_.at({id, m}))].shares = static_cast<int>(buffers_.size());
      }
      placeholders[node] = static_cast<int>(buffers_.size());
      buffers_.push_back(std::move(all));
    }
    program_.placeholders = std::move(placeholders);
  }

  void add_fetches() {
    std::vector<int> fetches;
    for (const int m : own_) {
      for (const int id : whole_.fetches) {
        const int producer = id < 0 ? -1 : producer_[index(id)];
        const bool is_here =
            producer >= 0 && (place(index(producer)).part < 0 || stage_of(index(producer)) == options_.stage);
        fetches.push_back(is_here ? copy_of(id, m) : -1);
      }
    }
    program_.fetches = std::move(fetches);
  }

  void add_constants() {
    std::vector<std::pair<int, NodeId>> constants;
    std::int64_t bytes = 0;
    for (const auto& [id, node] : whole_.constants) {
      const auto copy = copies_.find({id, 0});
      if (copy == copies_.end()) continue;
      constexpr std::int64_t kAlignment = 64;
      buffers_[index(copy->second)].offset = bytes;
      bytes += (buffers_[index(copy->second)].bytes + kAlignment - 1) / kAlignment * kAlignment;
      constants.emplace_back(copy->second, node);
    }
    program_.constants = std::move(constants);
    program_.constant_bytes = bytes;
  }

  void finish() {
    program_.backend = whole_.backend;
    program_.recomputation = whole_.recomputation;
    program_.updates = whole_.updates;
    program_.trains = whole_.trains;
    for (const auto& [node, id] : whole_.placeholders) {
      if (per_micro_batch_.contains(id)) {
        program_.samples = std::max(program_.samples, whole_.buffers[index(id)].desc.shape[0]);
      }
    }
    add_fetches();
    add_placeholders();
    add_constants();
    program_.micro_batches = static_cast<int>(own_.size());
    program_.stage = options_.stage;
    program_.transfers = static_cast<int>(messages_.size());
    program_.instructions = std::move(instructions_);
    program_.buffers = std::move(buffers_);
    for (Instruction& instruction : program_.instructions) {
      instruction.first_sample = instruction.micro_batch * program_.samples;
    }
  }

  static constexpr int kMostTransfers = 512;  // tags of a communicator

  const Program& whole_;
  const InPlacePairs& in_place_;
  const StageOptions& options_;
  const PipelineOrder& order_;
  std::vector<Place> places_;                             // [instruction]
  std::vector<int> producer_;                             // [buffer]: instruction; -1: a source
  std::set<int> per_micro_batch_;                         // buffers of placeholders
  std::map<std::pair<int, int>, int> tags_;               // (buffer, stage that reads it)
  std::set<std::pair<int, int>> long_;                    // likewise: may be received much later
  std::map<TaskKind, std::set<int>> arrivals_;            // buffers that arrive with a task
  std::map<TaskKind, std::vector<std::size_t>> of_task_;  // instructions
  std::map<int, int> sends_;                              // move -> message, of those whose end was not waited for
  std::vector<int> own_;                                  // micro-batches of this process
  std::set<std::pair<int, int>> arrived_;                 // (buffer, micro-batch)
  std::map<std::pair<int, int>, int> copies_;             // (buffer, micro-batch) -> buffer of the new program
  std::vector<Message> messages_;
  Program program_;
  std::vector<Instruction> instructions_;
  std::vector<Buffer> buffers_;
  InPlacePairs new_in_place_;
};

}  // namespace

std::pair<Program, InPlacePairs> keep_stage(const Program& whole, const InPlacePairs& in_place, const Parts& parts,
                                            const StageOptions& options) {
  return StageProgram(whole, in_place, parts, options).run();
}

}  // namespace trireme
