#include "trireme/report/plan_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "trireme/base/text_table.hpp"
#include "trireme/base/units.hpp"

namespace trireme::report {
namespace {

const Buffer& buffer_at(const Program& program, int id) { return program.buffers[id]; }

// Formats of tensors of rank 2 and up, repeated ones shown once.
std::string layouts(const Program& program, const std::vector<int>& buffers) {
  std::vector<std::string> names;
  for (const int id : buffers) {
    const TensorDesc& desc = buffer_at(program, id).desc;
    if (desc.shape.rank() < 2) continue;
    const std::string name = desc.format().name();
    if (names.empty() || names.back() != name) names.push_back(name);
    if (names.size() > 3) return fmt::format("{}, ...", fmt::join(names.begin(), names.begin() + 3, ", "));
  }
  return names.empty() ? "-" : fmt::format("{}", fmt::join(names, ", "));
}

std::string notes(const Program& program, const Instruction& instruction) {
  std::vector<std::string> all;
  if (instruction.once) all.emplace_back("when variables change");
  if (instruction.recomputed) all.emplace_back("computed again");
  for (const int id : instruction.outputs) {
    if (buffer_at(program, id).shares >= 0) all.emplace_back("in place");
    if (buffer_at(program, id).kind == MemoryKind::gradient) all.emplace_back("gradient arena");
  }
  if (instruction.update && instruction.inputs.size() > 3)
    all.push_back(fmt::format("{} variables", instruction.inputs.size() / 2));
  all.resize(std::unique(all.begin(), all.end()) - all.begin());
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string instruction_table(const Program& program) {
  TextTable table({{"#", Align::right},
                   {"node"},
                   {"operation"},
                   {"kernel"},
                   {"layouts in"},
                   {"layouts out"},
                   {"shape out"},
                   {"bytes", Align::right},
                   {"flops", Align::right},
                   {"notes"}});
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    const std::string shape =
        instruction.outputs.empty() ? "-" : to_string(buffer_at(program, instruction.outputs[0]).desc.shape);
    table.add_row({std::to_string(i), instruction.name, instruction.operation, instruction.implementation,
                   layouts(program, instruction.inputs), layouts(program, instruction.outputs), shape,
                   format_bytes(instruction.cost.bytes), format_flops(instruction.cost.flops),
                   notes(program, instruction)});
  }
  return table.text();
}

std::string fusion_lines(const Program& program) {
  std::map<std::string, int> counts;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.operation.find('+') != std::string::npos) ++counts[instruction.operation];
    if (instruction.update && instruction.inputs.size() > 3)
      ++counts[instruction.operation + " over a range of the arena"];
  }
  std::string text = "Fused:\n";
  for (const auto& [label, count] : counts) text += fmt::format("  {:4} x {}\n", count, label);
  return counts.empty() ? "Fused: nothing\n" : text;
}

std::string reorder_lines(const Program& program) {
  int activations = 0, weights = 0, once = 0;
  double bytes = 0;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.operation != "reorder") continue;
    if (instruction.once) {
      ++once;
      continue;
    }
    const bool of_variable = buffer_at(program, instruction.inputs[0]).kind != MemoryKind::arena ||
                             buffer_at(program, instruction.outputs[0]).kind != MemoryKind::arena;
    ++(of_variable ? weights : activations);
    bytes += instruction.cost.bytes;
  }
  return fmt::format(
      "Reorders in each run: {} of activations, {} of weights and their gradients, {} moved; when variables change: "
      "{}\n",
      activations, weights, format_bytes(bytes), once);
}

}  // namespace

std::string describe(const Program& program, const Schedule& schedule) {
  const std::vector<Step>& steps = schedule.steps;
  const auto find = [&](Action action, int bucket) {
    return std::ranges::find(steps, Step{action, bucket}) - steps.begin();
  };
  const auto end = std::ssize(steps);
  // The instruction that follows a step.
  const auto place = [&](std::ptrdiff_t at) {
    const auto next = std::find_if(steps.begin() + at, steps.end(), [&](const Step& step) {
      return step.action == Action::compute && !applies_gradients(program.instructions[step.index]);
    });
    return next == steps.end() ? std::string("the end") : fmt::format("#{}", next->index);
  };
  TextTable table({{"bucket", Align::right},
                   {"tensors", Align::right},
                   {"bytes", Align::right},
                   {"transfer"},
                   {"starts before"},
                   {"waited for before"},
                   {"beside", Align::right},
                   {"flops", Align::right}});
  bool transfers = false;
  for (std::size_t bucket = 0; bucket < schedule.updates.size(); ++bucket) {
    const int index = static_cast<int>(bucket);
    const std::ptrdiff_t scatter = find(Action::scatter, index), wait = find(Action::wait, index);
    const std::ptrdiff_t start = std::min(find(Action::start, index), scatter);
    if (start == end) continue;
    transfers = true;
    const Instruction& update = program.instructions[schedule.updates[bucket]];
    double bytes = 0, flops = 0;
    for (std::size_t at = 2; at < update.inputs.size(); at += 2) {
      bytes += static_cast<double>(buffer_at(program, update.inputs[at]).bytes);
    }
    // Values from servers are awaited in the next run.
    const bool next_run = wait < start;
    int beside = 0;
    for (std::ptrdiff_t at = 0; at < end; ++at) {
      const Step& step = steps[at];
      const bool between = next_run ? at > start || at < wait : at > start && at < wait;
      if (!between || step.action != Action::compute) continue;
      ++beside;
      flops += program.instructions[step.index].cost.flops;
    }
    table.add_row({std::to_string(index + 1), std::to_string(update.inputs.size() / 2), format_bytes(bytes),
                   next_run         ? "to servers and back"
                   : scatter == end ? "all-reduce"
                                    : "reduce-scatter, update, all-gather",
                   place(start), wait == end ? "-" : place(wait) + (next_run ? " of the next step" : ""),
                   std::to_string(beside), format_flops(flops)});
  }
  if (!transfers) return "";
  return fmt::format("Gradients, and what runs during their transfer\n{}", table.text());
}

std::string describe(const Program& program) {
  const MemorySummary& memory = program.memory;
  double bytes = 0;
  for (const Instruction& instruction : program.instructions) bytes += instruction.once ? 0 : instruction.cost.bytes;
  std::string text = instruction_table(program) + "\n" + fusion_lines(program) + reorder_lines(program);
  text += fmt::format("Work of one run: {} in {} instructions, {} to read and write\n", format_flops(program.flops()),
                      program.instructions.size(), format_bytes(bytes));
  text += fmt::format(
      "Activation memory: {} planned, {} if every tensor had its own, at most {} alive at once; largest scratch "
      "{}\n",
      format_bytes(memory.planned_bytes), format_bytes(memory.unplanned_bytes), format_bytes(memory.peak_live_bytes),
      format_bytes(memory.scratch_bytes));
  if (const Recomputation& again = program.recomputation; again.nodes > 0) {
    text += fmt::format(
        "Recomputation: {} {} again, {:.1f} % more flops and {:.1f} % more bytes moved; {} would be "
        "planned without it\n",
        again.nodes, again.nodes == 1 ? "operation runs" : "operations run", 100 * again.extra_flops,
        100 * again.extra_bytes, format_bytes(again.planned_bytes_without));
  }
  text += fmt::format("Kept between runs: {} of variables, {} of gradients, {} of optimizer state\n",
                      format_bytes(memory.variable_bytes), format_bytes(memory.gradient_bytes),
                      format_bytes(memory.optimizer_bytes));
  return text;
}

}  // namespace trireme::report
