// A program with memory: the arena, the constants, bound kernels. Made by Session::prepare; the loop of a benchmark or
// a trainer writes inputs, calls run(), reads outputs; nothing in it allocates or looks up.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "trireme/plan/program.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme {

class InterOpPool;

// The place of an executable among those that run copies of one program on shares of a batch; see batch_split.hpp.
struct GroupPlace {
  int group = 0;
  int groups = 1;
  bool own_statistics = false;  // batch statistics of each group's samples instead of all
  Meeting* meeting = nullptr;
  void* shared = nullptr;  // shared_bytes(program) for every group, one after the other
};
// What the kernels of one group tell the others.
std::int64_t shared_bytes(const Program& program);

class Executable {
 public:
  // A pool, where one is given, runs independent instructions at the same time.
  Executable(const Executable&) = delete;
  Executable(Program program, VariableStore& store, std::uint64_t seed, InterOpPool* pool, GroupPlace place = {});

  const Program& program() const { return program_; }

  // Plain row-major memory of a placeholder; write it before run(). Throws if the fetches do not need the placeholder.
  std::span<float> input_f32(Tensor placeholder);
  std::span<std::int32_t> input_i32(Tensor placeholder);
  void feed(Tensor placeholder, const HostTensor& value);  // checks the type
  bool needs(Tensor placeholder) const;
  std::vector<NodeId> placeholders() const;

  void run();
  // The two halves of run(), for groups: what all do at the same time, and what one does after all have ended.
  void run_share();
  void count_run();
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
  void bind();
  void plan_meetings();
  void execute(std::size_t index);
  void run_once_instructions();
  int buffer_of(Tensor placeholder) const;
  void* address(int buffer) const;

  Program program_;
  VariableStore& store_;
  std::uint64_t seed_;
  GroupPlace place_;
  AlignedMemory arena_, constants_;
  std::uint64_t variables_seen_ = 0;  // store version at the last run of the instructions that run once
  RunContext context_;
  bool profiling_ = false;
  Profile profile_;
  std::vector<int> items_;   // instructions of every run
  std::vector<bool> meets_;  // instruction: the groups meet before it
  std::vector<bool> skips_;  // instruction: another group does it for all
  InterOpPool* pool_;
  std::vector<std::vector<int>> successors_;  // with a pool: instructions that wait for each one
  std::vector<int> predecessors_;             // and how many each one waits for
  std::function<void(int)> execute_item_;
};

}  // namespace trireme
