// A graph compiled for some fetches on a backend, with all memory planned. Compiled and bound to memory once; runs
// neither allocate nor look anything up. Made by Session; read by `trireme models --plan` and the profile.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "trireme/plan/backend.hpp"
#include "trireme/plan/pipeline_order.hpp"

namespace trireme {

// A shadow is a variable's value in another type: see Backend::shadow_type().
enum class MemoryKind : std::uint8_t { arena, variable, shadow, gradient, constant };

struct Buffer {
  TensorDesc desc;
  std::string name = {};  // of the node that makes it
  MemoryKind kind = MemoryKind::arena;
  NodeId variable = -1;     // variable, shadow, gradient: the variable's node in the user's graph
  std::int64_t offset = 0;  // in the arena or in the constants
  std::int64_t bytes = 0;
  int first = 0, last = 0;  // instructions of the first write and the last use
  int shares = -1;          // buffer whose memory it uses (in place, or a view)
  std::int64_t within = 0;  // offset in the memory that it shares

  bool is_of_variable() const { return kind == MemoryKind::variable || kind == MemoryKind::shadow; }
};

// A message from or to another stage of a pipeline; see stages.hpp. A transfer that was begun is waited for later.
struct Transfer {
  enum class Kind : std::uint8_t { none, send, receive, wait };
  Kind kind = Kind::none;
  int number = 0;  // of the message in its program
  int peer = 0;    // rank
  int tag = 0;
};

struct Instruction {
  std::string name;
  std::string operation;  // "convolution+bias+relu", "reorder"
  std::string implementation;
  std::vector<int> inputs;  // buffers
  std::vector<int> outputs;
  int scratch = -1;               // buffer
  std::int64_t shared_bytes = 0;  // see KernelMemory::shared
  Cost cost;
  bool once = false;  // depends only on variables: run when they have changed, not in every step
  bool update = false;
  bool recomputed = false;         // repeats an earlier instruction
  const Node* node = nullptr;      // of the fused graph; null for reorders and transfers
  std::unique_ptr<Kernel> kernel;  // null for transfers and if it collects
  // Of a program that works on several micro-batches:
  bool collects = false;  // stands where gradients of an ApplyGradients are complete that are not the last to be summed
  int micro_batch = 0;
  std::int64_t first_sample = 0;              // of the micro-batch
  PipelineTask task = PipelineTask::forward;  // of a stage: that it belongs to
  int part = 0;                               // likewise
  Transfer transfer = {};
};

struct MemorySummary {
  std::int64_t planned_bytes = 0;    // the arena, with scratch
  std::int64_t unplanned_bytes = 0;  // without sharing between buffers
  std::int64_t peak_live_bytes = 0;  // the most alive at once: a lower bound for any plan
  std::int64_t scratch_bytes = 0;    // the largest
  // Kept between runs, outside the arena.
  std::int64_t variable_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;
};

struct Recomputation {                     // cost and savings of recomputation in one run
  int nodes = 0;                           // that run a second time
  double extra_flops = 0;                  // of these, relative to Program::flops(), which excludes them
  double extra_bytes = 0;                  // read and written by these, relative to the others
  std::int64_t planned_bytes_without = 0;  // the arena without recomputation
};

// Layouts fixed by earlier programs, by node of the user's graph; compile() adds the ones it fixes.
using VariableLayouts = std::unordered_map<NodeId, Layout>;

struct Program {
  std::string backend;
  std::unique_ptr<Graph> graph;  // the pruned and fused copy that the instructions' nodes belong to
  std::vector<Instruction> instructions;
  std::vector<Buffer> buffers;
  std::vector<int> fetches;                       // buffer per fetch; -1 for an update
  std::unordered_map<NodeId, int> placeholders;   // node of the user's graph -> buffer
  std::vector<std::pair<int, NodeId>> constants;  // buffer of MemoryKind::constant, and its node here
  std::int64_t constant_bytes = 0;
  MemorySummary memory;
  Recomputation recomputation;
  int micro_batches = 1;     // in a run: placeholders have that many times the graph's samples, and fetches repeat
  std::int64_t samples = 0;  // of a micro-batch, if there are several
  int stage = -1;            // of a pipeline; -1: it has none
  int transfers = 0;         // messages from and to other stages
  std::vector<std::int64_t> cut_bytes;  // of a stage, [cut of the pipeline]: that cross it in a step, both ways
  std::uint64_t network_hash = 0;       // of a stage: equal in all stages that can exchange tensors
  bool updates = false;                 // some instruction writes a variable
  bool trains = false;                  // some instruction applies gradients: a run is a training step

  double flops() const;  // of one run, without once-only and recomputed instructions
};

// Compiles what the fetches need. Adds the layouts it gives to variables that have none yet.
Program compile(const Graph& graph, std::span<const Tensor> fetches, const Backend& backend,
                const CompileOptions& options, VariableLayouts& variable_layouts);

}  // namespace trireme
