// A program with memory: the arena, the constants, bound kernels. Made by Session::prepare; the loop of a benchmark or a
// trainer writes inputs, calls run(), reads outputs; nothing in it allocates or looks up.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trireme/plan/program.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme {

class InterOpPool;

class Executable {
 public:
  Executable(Program program, VariableStore& store, std::uint64_t seed, int inter_threads);
  ~Executable();

  const Program& program() const { return program_; }

  // Plain row-major memory of a placeholder; write it before run(). Throws if the fetches do not need the placeholder.
  std::span<float> input_f32(Tensor placeholder);
  std::span<std::int32_t> input_i32(Tensor placeholder);
  void feed(Tensor placeholder, const HostTensor& value);  // checks the type
  bool needs(Tensor placeholder) const;
  std::vector<NodeId> placeholders() const;

  void run();
  // Plain memory of a fetch, valid until the next run(); by position in the fetches.
  std::span<const float> output(int fetch) const;
  HostTensor fetched(int fetch) const;

  // Seconds of each instruction are added up from now on, in instructions' order.
  void enable_profile();
  struct Profile {
    std::vector<double> seconds;
    std::int64_t runs = 0;
  };
  const Profile& profile() const { return profile_; }

  std::int64_t sample_offset = 0;  // see RunContext

 private:
  void execute(Instruction& instruction, std::size_t index);
  int buffer_of(Tensor placeholder) const;
  void* address(int buffer) const;

  Program program_;
  VariableStore& store_;
  std::uint64_t seed_;
  AlignedMemory arena_, constants_;
  std::uint64_t variables_seen_ = 0;  // store version at the last run of the instructions that run once
  RunContext context_;
  bool profiling_ = false;
  Profile profile_;
  std::unique_ptr<InterOpPool> pool_;  // with more than one inter-op thread
};

}  // namespace trireme
