#include "trireme/plan/stages.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>

#include "tests/support/apart_device.hpp"
#include "trireme/base/error.hpp"
#include "trireme/graph/functions.hpp"
#include "trireme/models/model.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme {
namespace {

struct Network {
  Graph graph;
  std::vector<Tensor> fetches;

  explicit Network(const std::string& name) {
    const Model model = build_model(graph, name, {.batch_size = 2, .num_classes = 5});
    fetches = {model.loss};
    const Tensor rate = placeholder(graph, {}, "learning_rate");
    for (const Tensor& update : minimize(model.loss, optimizer_rule(op::OptimizerKind::momentum), rate)) {
      fetches.push_back(update);
    }
  }
};

class Stages : public testing::Test {
 protected:
  std::vector<Program> compile_all(const Network& network, StageOptions options) const {
    std::vector<Program> programs;
    const PipelineShape& shape = options.order.shape;
    for (options.stage = 0; options.stage < shape.stages; ++options.stage) {
      for (options.replica = 0; options.replica < shape.replicas_of(options.stage); ++options.replica) {
        CompileOptions compiling;
        compiling.stages = std::make_shared<const StageOptions>(options);
        VariableLayouts layouts;
        programs.push_back(compile(network.graph, network.fetches, *backend_, compiling, layouts));
      }
    }
    return programs;
  }

  StageOptions cut(const Network& network, PipelineKind kind, std::vector<int> replicas, int micro_batches) const {
    const int chunks = default_chunks(kind), stages = static_cast<int>(replicas.size());
    return {.cuts = choose_cuts(network.graph, network.fetches, *backend_, stages * chunks),
            .order = make_pipeline_order(
                kind,
                {.stages = stages, .micro_batches = micro_batches, .chunks = chunks, .replicas = std::move(replicas)})};
  }

  std::shared_ptr<Backend> backend_ = testkit::make_test_backend("");
};

// Whether all ranks come to the end if a message ends only when both sides have begun it; and whether both sides of
// each message have as many bytes.
bool ends(const std::vector<Program>& programs) {
  struct Side {
    int number = 0;
    std::int64_t bytes = 0;
  };
  using Path = std::array<int, 3>;  // sender, receiver, tag
  std::map<Path, std::array<std::deque<Side>, 2>> begun;
  std::set<std::pair<int, int>> ended;  // rank, message
  std::vector<std::size_t> at(programs.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
      const int self = static_cast<int>(rank);
      const Program& program = programs[rank];
      for (; at[rank] < program.instructions.size(); ++at[rank], moved = true) {
        const Instruction& instruction = program.instructions[at[rank]];
        const Transfer& transfer = instruction.transfer;
        if (transfer.kind == Transfer::Kind::none) continue;
        if (transfer.kind == Transfer::Kind::wait) {
          if (!ended.contains({self, transfer.number})) break;
          continue;
        }
        const bool sends = transfer.kind == Transfer::Kind::send;
        const int id = sends ? instruction.inputs[0] : instruction.outputs[0];
        const Path path = sends ? Path{self, transfer.peer, transfer.tag} : Path{transfer.peer, self, transfer.tag};
        auto& [senders, receivers] = begun[path];
        (sends ? senders : receivers).push_back({transfer.number, program.buffers[static_cast<std::size_t>(id)].bytes});
        while (!senders.empty() && !receivers.empty()) {
          EXPECT_EQ(senders.front().bytes, receivers.front().bytes) << instruction.name;
          ended.insert({path[0], senders.front().number});
          ended.insert({path[1], receivers.front().number});
          senders.pop_front();
          receivers.pop_front();
        }
      }
    }
  }
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    if (at[rank] < programs[rank].instructions.size()) return false;
  }
  for (const auto& [path, sides] : begun) EXPECT_TRUE(sides[0].empty() && sides[1].empty());
  return true;
}

constexpr PipelineKind kKinds[] = {PipelineKind::gpipe, PipelineKind::one_forward, PipelineKind::interleaved,
                                   PipelineKind::zero_bubble};

TEST_F(Stages, ComeToTheEndWithMessagesThatWaitForBothSides) {
  for (const char* name : {"resnet20", "resnet29_v2"}) {
    const Network network(name);
    for (const PipelineKind kind : kKinds) {
      for (const int stages : {2, 3, 4}) {
        const StageOptions options =
            cut(network, kind, std::vector<int>(static_cast<std::size_t>(stages), 1), 2 * stages);
        EXPECT_TRUE(ends(compile_all(network, options))) << name << " " << to_string(kind) << " " << stages;
      }
    }
  }
}

TEST_F(Stages, OfUnequalNumbersOfWorkersComeToTheEnd) {
  const Network network("mnist");
  for (const PipelineKind kind : {PipelineKind::gpipe, PipelineKind::one_forward, PipelineKind::zero_bubble}) {
    for (const std::vector<int>& replicas : {std::vector{3, 1},
                                             {1, 3},
                                             {2, 2},
                                             {2, 1, 2},
                                             {2, 2, 1},
                                             {1, 2, 1},
                                             {3, 2, 1},
                                             {2, 1, 3},
                                             {1, 1, 2, 2},
                                             {4, 2, 1}}) {
      EXPECT_TRUE(ends(compile_all(network, cut(network, kind, replicas, 12))))
          << to_string(kind) << " " << testing::PrintToString(replicas);
    }
  }
}

// Of all workers' messages, each of which crosses the cuts between its stages.
TEST_F(Stages, KnowHowManyBytesCrossTheirCuts) {
  for (const std::vector<int>& replicas : {std::vector{1, 1}, {1, 1, 1}, {2, 1}}) {
    const Network network("resnet20");
    const StageOptions options = cut(network, PipelineKind::one_forward, replicas, 4);
    const std::vector<Program> programs = compile_all(network, options);
    std::vector<std::int64_t> expected(options.cuts.size(), 0);
    for (const Program& program : programs) {
      EXPECT_EQ(program.cut_bytes, programs.front().cut_bytes);
      for (const Instruction& instruction : program.instructions) {
        if (instruction.transfer.kind != Transfer::Kind::send) continue;
        int to = 0;  // stage
        for (int rank = instruction.transfer.peer; rank >= replicas[static_cast<std::size_t>(to)]; ++to)
          rank -= replicas[static_cast<std::size_t>(to)];
        for (int at = std::min(program.stage, to); at < std::max(program.stage, to); ++at)
          expected[static_cast<std::size_t>(at)] +=
              program.buffers[static_cast<std::size_t>(instruction.inputs[0])].bytes;
      }
    }
    EXPECT_EQ(programs.front().cut_bytes, expected) << testing::PrintToString(replicas);
    EXPECT_GT(expected.front(), 0);
  }
}

// As devices need that have no tags.
TEST_F(Stages, ReceiveInTheOrderInWhichOthersSend) {
  using Names = std::vector<std::string>;
  for (const char* name : {"resnet29_v2", "googlenet"}) {
    const Network network(name);
    for (const PipelineKind kind : {PipelineKind::gpipe, PipelineKind::one_forward, PipelineKind::zero_bubble}) {
      const auto programs = compile_all(network, cut(network, kind, {2, 1, 2}, 8));
      std::map<std::pair<int, int>, Names> sent, received;
      for (int rank = 0; rank < std::ssize(programs); ++rank) {
        for (const Instruction& instruction : programs[static_cast<std::size_t>(rank)].instructions) {
          const Transfer& transfer = instruction.transfer;
          if (transfer.kind == Transfer::Kind::send) sent[{rank, transfer.peer}].push_back(instruction.name);
          if (transfer.kind == Transfer::Kind::receive) received[{transfer.peer, rank}].push_back(instruction.name);
        }
      }
      EXPECT_EQ(received, sent) << name << ", " << to_string(kind);
    }
  }
}

// Inside a block, what the shortcut carries is needed on both sides, forward and backward.
TEST_F(Stages, MayBeginAnywhere) {
  const Network network("resnet20");
  const std::vector<std::string> places = choose_cuts(network.graph, network.fetches, *backend_, 24);
  for (std::size_t i = 0; i + 1 < places.size(); i += 3) {
    for (const PipelineKind kind : {PipelineKind::gpipe, PipelineKind::one_forward, PipelineKind::zero_bubble}) {
      const StageOptions options{.cuts = {places[i], places[i + 1]},
                                 .order = make_pipeline_order(kind, {.stages = 3, .micro_batches = 5})};
      EXPECT_TRUE(ends(compile_all(network, options))) << places[i] << " " << to_string(kind);
    }
  }
}

// As PipeDream's "15-1": many workers share the convolutions; the matrices, which have large gradients and little to
// compute, are in the stage of one. They would be shared if the gradients' sum cost nothing, over many micro-batches.
TEST_F(Stages, OfFewerWorkersGetTheMatrices) {
  for (const auto& [name, workers] : {std::pair("alexnet", 3), std::pair("vgg16", 15)}) {
    const Network network(name);
    const auto share_of_one = [&, shared_by = workers](int micro_batches) {
      const auto cuts = choose_cuts(network.graph, network.fetches, *backend_, 2, {shared_by, 1}, micro_batches);
      const auto work = work_of_parts(network.graph, network.fetches, *backend_, cuts);
      return static_cast<double>(work[1].variable_bytes) /
             static_cast<double>(work[0].variable_bytes + work[1].variable_bytes);
    };
    EXPECT_GT(share_of_one(30), 0.85) << name;
    EXPECT_LT(share_of_one(1'000'000), 0.5) << name;
  }
}

TEST_F(Stages, HaveEachVariableOnceAndTheSameNetwork) {
  const Network network("resnet20");
  const auto programs = compile_all(network, cut(network, PipelineKind::interleaved, {1, 1}, 4));
  std::set<NodeId> all;
  for (const Program& program : programs) {
    std::set<NodeId> own;
    for (const Buffer& buffer : program.buffers) {
      if (buffer.kind == MemoryKind::variable) own.insert(buffer.variable);
    }
    for (const NodeId id : own) EXPECT_TRUE(all.insert(id).second) << network.graph.node(id).name;
    EXPECT_EQ(program.network_hash, programs.front().network_hash);
  }
  EXPECT_EQ(all.size(), network.graph.variables().size());
  const auto others = compile_all(network, cut(network, PipelineKind::gpipe, {1, 1, 1}, 4));
  EXPECT_NE(others.front().network_hash, programs.front().network_hash);
}

// 1f1b keeps the micro-batches of as many stages as follow, gpipe all.
TEST_F(Stages, MemoryIsPlannedForWhatTheScheduleKeeps) {
  const Network network("resnet20");
  const auto planned = [&](PipelineKind kind, int micro_batches) {
    return compile_all(network, cut(network, kind, {1, 1}, micro_batches)).front().memory.planned_bytes;
  };
  EXPECT_LT(static_cast<double>(planned(PipelineKind::one_forward, 16)),
            1.1 * static_cast<double>(planned(PipelineKind::one_forward, 4)));
  EXPECT_GT(static_cast<double>(planned(PipelineKind::gpipe, 16)),
            3 * static_cast<double>(planned(PipelineKind::one_forward, 16)));
}

TEST_F(Stages, ACutThatNamesNoOperationIsRefusedWithASuggestion) {
  const Network network("mnist");
  StageOptions options = cut(network, PipelineKind::gpipe, {1, 1}, 2);
  options.cuts = {"conv2/convolutoin"};
  try {
    compile_all(network, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'conv2/convolution'?"), std::string::npos) << error.what();
  }
  EXPECT_THROW(choose_cuts(network.graph, network.fetches, *backend_, 1000), Error);
}

}  // namespace
}  // namespace trireme
