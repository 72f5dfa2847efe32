// What there is to choose about how a graph is compiled, and what users call it. Part of SessionOptions; light, because
// programs include it.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "trireme/graph/graph.hpp"

namespace trireme {

enum class DataFormat : std::uint8_t { automatic, nchw, nhwc };

// With bf16 and fp16, activations and their gradients are stored and multiplied in that type where there are kernels
// for it. Variables, their gradients, the optimizer's state, batch statistics and losses are f32 in every precision,
// and so are sums. With tf32 all is stored in f32, and products are of factors with ten bits. fp16 has less range than
// f32: train with a scaled loss (LossScale in optim/optimizer.hpp), or small gradients are lost.
enum class Precision : std::uint8_t { fp32, tf32, bf16, fp16 };

// What runs again in backward instead of being kept since forward: nothing; what costs little beside convolutions
// (normalisation, activations, sums, pooling, concat); or all but some results, convolutions included.
enum class Recompute : std::uint8_t { none, cheap, full };

std::string_view to_string(DataFormat format);
std::string_view to_string(Recompute recompute);
std::string_view to_string(Precision precision);

// Variables of one owner lie together in memory and are updated together, apart from those of others. Where variables
// live on several servers, that is what each server has. By node of the user's graph; a variable without an entry
// belongs to nobody, which is an owner too.
using VariableOwners = std::unordered_map<NodeId, int>;

struct CompileOptions {
  DataFormat data_format = DataFormat::automatic;
  bool fuse = true;
  bool plan_memory = true;  // false: every tensor keeps memory of its own (to compare, and to debug)
  int inter_threads = 1;    // instructions that may run at the same time
  // Gradients of so many bytes are applied together: enough that an update is worth starting a team of threads for, and
  // few enough to be warm in the cache still.
  std::int64_t update_bytes = 4 << 20;
  VariableOwners owners = {};
  Recompute recompute = Recompute::none;
  Precision precision = Precision::fp32;
};

}  // namespace trireme
