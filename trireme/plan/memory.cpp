#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <queue>

#include "trireme/plan/passes.hpp"

namespace trireme {
namespace {

constexpr std::ptrdiff_t kMany = 6000;   // buffers
constexpr std::int64_t kAlignment = 64;  // a cache line, and the widest vector

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

int root_of(const std::vector<Buffer>& buffers, int id) {
  while (buffers[id].shares >= 0) id = buffers[id].shares;
  return id;
}

void set_lifetimes(Program& program) {
  const int end = static_cast<int>(program.instructions.size());
  for (Buffer& buffer : program.buffers) {
    buffer.first = end;
    buffer.last = -1;
  }
  auto touch = [&](int id, int at) {
    if (id < 0) return;
    Buffer& buffer = program.buffers[id];
    buffer.first = std::min(buffer.first, at);
    buffer.last = std::max(buffer.last, at);
  };
  for (int i = 0; i < end; ++i) {
    const Instruction& instruction = program.instructions[i];
    for (int id : instruction.inputs) touch(id, i);
    for (int id : instruction.outputs) touch(id, i);
    touch(instruction.scratch, i);
    // An update may be delayed until other replicas' gradients arrive; its rate must still be there.
    if (instruction.node != nullptr && instruction.node->as<op::ApplyGradients>() != nullptr) {
      touch(instruction.inputs[0], end);
    }
    if (instruction.once) {
      for (int id : instruction.outputs) {
        touch(id, 0);
        touch(id, end);
      }
    }
  }
  for (const auto& [node, id] : program.placeholders) {
    touch(id, 0);
    touch(id, end);
  }
  for (int id : program.fetches) touch(id, end);
}

// An output takes over the memory of an input that nobody reads afterwards.
void share_in_place(Program& program, const InPlacePairs& in_place) {
  auto& buffers = program.buffers;
  std::vector<bool> fed(buffers.size(), false);
  for (const auto& [node, id] : program.placeholders) fed[id] = true;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.once) continue;
    for (const auto& [in, out] : in_place[i]) {
      const int input = root_of(buffers, instruction.inputs[in]);
      const int output = instruction.outputs[out];
      Buffer& from = buffers[input];
      Buffer& to = buffers[output];
      const auto times_read = std::count_if(instruction.inputs.begin(), instruction.inputs.end(),
                                            [&](int id) { return root_of(buffers, id) == input; });
      const bool taken = std::any_of(instruction.outputs.begin(), instruction.outputs.end(),
                                     [&](int id) { return root_of(buffers, id) == input; });
      if (from.kind != MemoryKind::arena || to.kind != MemoryKind::arena || to.shares >= 0 || taken || fed[input] ||
          times_read != 1 || from.last != static_cast<int>(i) || from.bytes < to.bytes ||
          from.desc.dtype != to.desc.dtype) {
        continue;
      }
      to.shares = input;
      from.last = to.last;
    }
  }
}

std::int64_t peak_of(const std::vector<const Buffer*>& buffers, int end) {
  std::vector<std::int64_t> change(static_cast<std::size_t>(end) + 2, 0);
  for (const Buffer* buffer : buffers) {
    change[buffer->first] += aligned(buffer->bytes);
    change[static_cast<std::size_t>(buffer->last) + 1] -= aligned(buffer->bytes);
  }
  std::int64_t live = 0, peak = 0;
  for (const std::int64_t c : change) peak = std::max(peak, live += c);
  return peak;
}

// Places buffers one by one into the lowest gap that is free during their life; returns the arena's size.
std::int64_t place(std::vector<Buffer*>& order, int slack) {
  std::vector<Buffer*> placed;  // by offset
  std::int64_t size = 0;
  for (Buffer* buffer : order) {
    const std::int64_t bytes = aligned(buffer->bytes);
    std::int64_t candidate = 0, best = -1, best_gap = std::numeric_limits<std::int64_t>::max();
    for (const Buffer* other : placed) {
      if (other->first > buffer->last + slack || buffer->first > other->last + slack) continue;
      const std::int64_t gap = other->offset - candidate;
      if (gap >= bytes && gap < best_gap) {
        best = candidate;
        best_gap = gap;
      }
      candidate = std::max(candidate, other->offset + aligned(other->bytes));
    }
    buffer->offset = best >= 0 ? best : candidate;
    size = std::max(size, buffer->offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), buffer,
                                   [](const Buffer* a, const Buffer* b) { return a->offset < b->offset; }),
                  buffer);
  }
  return size;
}

// Memory that is handed out and taken back over time.
class Sweep {
 public:
  // Into the smallest gap that is large enough, else at the end.
  std::int64_t take(std::int64_t bytes) {
    auto best = gaps_.end();
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
      if (gap->second >= bytes && (best == gaps_.end() || gap->second < best->second)) best = gap;
    }
    if (best == gaps_.end()) {
      const bool ends_with_gap = !gaps_.empty() && gaps_.rbegin()->first + gaps_.rbegin()->second == end_;
      const std::int64_t offset = ends_with_gap ? gaps_.rbegin()->first : end_;
      if (ends_with_gap) gaps_.erase(std::prev(gaps_.end()));
      end_ = offset + bytes;
      return offset;
    }
    const auto [offset, size] = *best;
    gaps_.erase(best);
    if (size > bytes) gaps_.emplace(offset + bytes, size - bytes);
    return offset;
  }
  void give_back(std::int64_t offset, std::int64_t bytes) {
    auto next = gaps_.lower_bound(offset);
    if (next != gaps_.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = gaps_.erase(next);
    }
    if (next != gaps_.begin() && std::prev(next)->first + std::prev(next)->second == offset) {
      std::prev(next)->second += bytes;
    } else {
      gaps_.emplace(offset, bytes);
    }
  }
  std::int64_t size() const { return end_; }

 private:
  std::map<std::int64_t, std::int64_t> gaps_;  // offset -> bytes
  std::int64_t end_ = 0;
};

// Like place() in the order of time, without looking at all pairs.
std::int64_t place_in_time(const std::vector<Buffer*>& by_start, int slack) {
  const auto later = [](const Buffer* a, const Buffer* b) { return a->last > b->last; };
  std::priority_queue<Buffer*, std::vector<Buffer*>, decltype(later)> live(later);
  Sweep memory;
  for (Buffer* buffer : by_start) {
    for (; !live.empty() && live.top()->last + slack < buffer->first; live.pop()) {
      memory.give_back(live.top()->offset, aligned(live.top()->bytes));
    }
    buffer->offset = memory.take(aligned(buffer->bytes));
    live.push(buffer);
  }
  return memory.size();
}

// No placing order is best for every network: takes the best of a few. Of very many buffers it takes the order of time,
// as the others look at all pairs.
std::int64_t place_best(const std::vector<Buffer*>& roots, int slack) {
  auto by_size = roots;
  std::stable_sort(by_size.begin(), by_size.end(), [](auto* a, auto* b) { return a->bytes > b->bytes; });
  auto by_life = roots;
  std::stable_sort(by_life.begin(), by_life.end(),
                   [](auto* a, auto* b) { return a->last - a->first > b->last - b->first; });
  auto by_start = roots;
  std::stable_sort(by_start.begin(), by_start.end(), [](auto* a, auto* b) { return a->first < b->first; });
  if (std::ssize(roots) > kMany) return place_in_time(by_start, slack);
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> offsets;
  for (auto* order : {&by_size, &by_life, &by_start}) {
    const std::int64_t size = place(*order, slack);
    if (size >= best) continue;
    best = size;
    offsets.clear();
    for (const Buffer* root : roots) offsets.push_back(root->offset);
  }
  for (std::size_t i = 0; i < roots.size(); ++i) roots[i]->offset = offsets[i];
  return best;
}

}  // namespace

MemorySummary plan_memory(Program& program, const InPlacePairs& in_place, const CompileOptions& options) {
  set_lifetimes(program);
  MemorySummary summary;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.kind == MemoryKind::arena && buffer.shares < 0) summary.unplanned_bytes += aligned(buffer.bytes);
  }
  if (options.plan_memory) share_in_place(program, in_place);

  std::vector<Buffer*> roots;
  for (Buffer& buffer : program.buffers) {
    if (buffer.kind != MemoryKind::arena || buffer.shares >= 0 || buffer.last < 0) continue;
    roots.push_back(&buffer);
  }
  if (options.plan_memory && !roots.empty()) {
    // Concurrent instructions need separate memory: extends lifetimes a little.
    const int slack = options.inter_threads > 1 ? 2 * options.inter_threads : 0;
    summary.planned_bytes = place_best(roots, slack);
  } else {
    for (Buffer* root : roots) {
      root->offset = summary.planned_bytes;
      summary.planned_bytes += aligned(root->bytes);
    }
  }
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    Buffer& buffer = program.buffers[i];
    if (buffer.shares < 0) continue;
    buffer.offset = program.buffers[root_of(program.buffers, static_cast<int>(i))].offset + buffer.within;
  }
  summary.peak_live_bytes = peak_of({roots.begin(), roots.end()}, static_cast<int>(program.instructions.size()));
  for (const Buffer& buffer : program.buffers) {
    if (buffer.kind == MemoryKind::variable) summary.variable_bytes += buffer.bytes;
    if (buffer.kind == MemoryKind::gradient) summary.gradient_bytes += buffer.bytes;
  }
  for (const Instruction& instruction : program.instructions) {
    if (instruction.scratch >= 0) {
      summary.scratch_bytes = std::max(summary.scratch_bytes, program.buffers[instruction.scratch].bytes);
    }
    const bool is_update = instruction.node != nullptr && !instruction.collects;
    const auto* apply = is_update ? instruction.node->as<op::ApplyGradients>() : nullptr;
    for (std::size_t i = 1; apply != nullptr && i < instruction.inputs.size(); i += 2) {
      summary.optimizer_bytes += op::state_count(apply->rule.kind) * program.buffers[instruction.inputs[i]].bytes;
    }
  }
  summary.optimizer_bytes = (summary.optimizer_bytes + options.state_shards - 1) / options.state_shards;
  return summary;
}

}  // namespace trireme
