#include "trireme/backend/tuner.hpp"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "trireme/base/error.hpp"
#include "trireme/graph/functions.hpp"

namespace trireme {
namespace {

// Kernels that sleep instead of computing: what the tuner sees of a kernel is its time.
class SleepingKernel final : public Kernel {
 public:
  SleepingKernel(std::chrono::milliseconds time, int& runs) : time_(time), runs_(runs) {}
  std::unique_ptr<Kernel> another() const override { return std::make_unique<SleepingKernel>(time_, runs_); }
  void bind(const KernelMemory& memory) override { bound_ = memory.inputs.size() == 1 && memory.scratch != nullptr; }
  void run(const RunContext&) override {
    EXPECT_TRUE(bound_);
    ++runs_;
    std::this_thread::sleep_for(time_);
  }

 private:
  std::chrono::milliseconds time_;
  int& runs_;
  bool bound_ = false;
};

class TunerTest : public testing::Test {
 protected:
  std::string pick(const TuningOptions& options, const std::string& left_out = "") {
    std::vector<Tuner::Alternative> alternatives;
    for (const auto& [name, milliseconds] : {std::pair("slow", 60), std::pair("quick", 1), std::pair("middle", 30)}) {
      if (name == left_out) continue;
      KernelChoice choice;
      choice.inputs = {Layout::plain(1)};
      choice.outputs = {Layout::plain(1)};
      choice.scratch_bytes = 64;
      choice.implementation = name;
      choice.kernel = std::make_unique<SleepingKernel>(std::chrono::milliseconds(milliseconds), runs[name]);
      alternatives.push_back({name, std::move(choice)});
    }
    return Tuner(options, "library").fastest("problem", std::move(alternatives), request).implementation;
  }

  Graph graph;
  Tensor node = relu(placeholder(graph, {4}));
  KernelRequest request{.node = graph.node(node),
                        .inputs = {{DataType::f32, {4}, Layout::plain(1)}},
                        .input_open = {false},
                        .output_wish = {nullptr}};
  int all_runs() const {
    int sum = 0;
    for (const auto& [name, count] : runs) sum += count;
    return sum;
  }
  std::map<std::string, int> runs;
};

TEST_F(TunerTest, OffTakesTheFirstWithoutRunningAnything) {
  EXPECT_EQ(pick({}), "slow");
  EXPECT_EQ(all_runs(), 0);
}

TEST_F(TunerTest, TheFastestIsTakenAndRememberedByCpuLibraryAndMode) {
  TuningOptions options{.autotune = Autotune::fast, .cpu = "A", .cache = std::make_shared<TuneCache>()};
  int notices = 0;
  options.on_first = [&] { ++notices; };
  EXPECT_EQ(pick(options), "quick");
  const int first = all_runs();
  for (const char* name : {"slow", "quick", "middle"}) EXPECT_GT(runs[name], 0) << name;
  EXPECT_EQ(notices, 1);
  EXPECT_EQ(options.cache->added(), 3);
  EXPECT_EQ(pick(options), "quick");
  EXPECT_EQ(all_runs(), first) << "known by now";
  options.cpu = std::string("B");
  EXPECT_EQ(pick(options), "quick");
  EXPECT_GT(all_runs(), first);
}

TEST_F(TunerTest, TheFastestIsKnownByNameOnceItWasTimed) {
  TuningOptions options{.autotune = Autotune::fast, .cache = std::make_shared<TuneCache>()};
  EXPECT_EQ(Tuner(options, "library").known_fastest("problem"), std::nullopt);
  pick(options);
  EXPECT_EQ(Tuner(options, "library").known_fastest("problem"), "quick");
  EXPECT_EQ(Tuner(options, "library").known_fastest("another problem"), std::nullopt);
  EXPECT_EQ(Tuner(options, "another library").known_fastest("problem"), std::nullopt);
  options.force = "slow";
  EXPECT_EQ(Tuner(options, "library").known_fastest("problem"), std::nullopt) << "another one is wanted";
  options = {.autotune = Autotune::off, .cache = options.cache};
  EXPECT_EQ(Tuner(options, "library").known_fastest("problem"), std::nullopt);
}

TEST_F(TunerTest, ATimeOfAKernelThatIsGoneIsIgnored) {
  const TuningOptions options{.autotune = Autotune::fast, .cache = std::make_shared<TuneCache>()};
  EXPECT_EQ(pick(options), "quick");
  const int first = all_runs();
  EXPECT_EQ(pick(options, "quick"), "middle");
  EXPECT_EQ(all_runs(), first) << "the others are known";
}

TEST_F(TunerTest, AKernelThatFailsIsLeftOutUnlessAllDo) {
  class FailingKernel final : public Kernel {
   public:
    std::unique_ptr<Kernel> another() const override { return std::make_unique<FailingKernel>(); }
    void bind(const KernelMemory&) override {}
    void run(const RunContext&) override { fail(ErrorKind::failed, "refused"); }
  };
  const auto with_failing = [&](bool another) {
    std::vector<Tuner::Alternative> alternatives;
    for (const char* name : {"failing", "failing too", "works"}) {
      KernelChoice choice;
      choice.inputs = {Layout::plain(1)};
      choice.outputs = {Layout::plain(1)};
      choice.scratch_bytes = 64;
      choice.implementation = name;
      choice.kernel = std::make_unique<FailingKernel>();
      if (choice.implementation == "works") {
        if (!another) continue;
        choice.kernel = std::make_unique<SleepingKernel>(std::chrono::milliseconds(1), runs[name]);
      }
      alternatives.push_back({name, std::move(choice)});
    }
    return Tuner({.autotune = Autotune::fast}, "library").fastest("problem", std::move(alternatives), request);
  };
  EXPECT_EQ(with_failing(true).implementation, "works");
  EXPECT_THROW(with_failing(false), Error);
}

TEST_F(TunerTest, ALongRunTellsEnoughUnlessInFull) {
  EXPECT_EQ(pick({.autotune = Autotune::fast}), "quick");
  EXPECT_EQ(runs["slow"], 1);
  runs.clear();
  EXPECT_EQ(pick({.autotune = Autotune::full}), "quick");
  EXPECT_GT(runs["slow"], 1);
  EXPECT_EQ(runs["quick"], runs["slow"]);
}

TEST_F(TunerTest, AForcedKernelIsTakenWhereThereIsOne) {
  EXPECT_EQ(pick({.force = "middle"}), "middle");
  EXPECT_EQ(pick({.force = "another"}), "slow");
  EXPECT_EQ(all_runs(), 0);
}

}  // namespace
}  // namespace trireme
