// Options of compiling a graph, with their user-visible names. Part of SessionOptions; light, as programs include it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "trireme/graph/graph.hpp"

namespace trireme {

enum class DataFormat : std::uint8_t { automatic, nchw, nhwc };

// With bf16 and fp16, activations and their gradients are stored and multiplied in that type if there are kernels for
// it. Variables, their gradients, optimizer state, batch statistics, losses and sums are always f32. tf32 stores
// everything in f32 and multiplies factors with ten bits. fp16 has less range than f32: without a scaled loss
// (LossScale in optim/optimizer.hpp) small gradients are lost.
enum class Precision : std::uint8_t { fp32, tf32, bf16, fp16 };

// What backward recomputes instead of keeping: nothing; what is cheap next to convolutions (normalization, activations,
// sums, pooling, concat); or all but some results, including convolutions.
enum class Recompute : std::uint8_t { none, cheap, full };

inline std::string_view to_string(DataFormat format) {
  return std::array{"auto", "nchw", "nhwc"}.at(static_cast<std::size_t>(format));
}
inline std::string_view to_string(Precision precision) {
  return std::array{"fp32", "tf32", "bf16", "fp16"}.at(static_cast<std::size_t>(precision));
}
inline std::string_view to_string(Recompute recompute) {
  return std::array{"none", "cheap", "full"}.at(static_cast<std::size_t>(recompute));
}

// Variables of one owner (one server, if variables live on servers) are adjacent in memory and updated together. By
// node of the user's graph; variables without an entry form an owner too.
using VariableOwners = std::unordered_map<NodeId, int>;

// Other batches than the graph's, the first extents of placeholders, by node.
using BatchSizes = std::map<NodeId, std::int64_t>;

struct StageOptions;  // stages.hpp

struct CompileOptions {
  DataFormat data_format = DataFormat::automatic;
  bool fuse = true;
  bool plan_memory = true;  // false: every tensor has its own memory (to compare and debug)
  int inter_threads = 1;    // instructions that may run concurrently
  // Gradient bytes applied together: enough to occupy a thread team, few enough to be still in the cache.
  std::int64_t update_bytes = 4 << 20;
  VariableOwners owners = {};
  int state_shards = 1;  // replicas that divide the optimizer's state; counts only in MemorySummary
  Recompute recompute = Recompute::none;
  Precision precision = Precision::fp32;
  BatchSizes batches = {};
  std::shared_ptr<const StageOptions> stages = {};  // of a pipeline; null: no pipeline
};

}  // namespace trireme
