// Runs parts of a graph: run(fetches, feeds) as people know it from TensorFlow. Keeps the variables and the programs
// compiled so far. For a loop without look-ups, prepare() once and run the returned Executable.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "trireme/runtime/executable.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme {

struct SessionOptions {
  std::uint64_t seed = 1;
  CompileOptions compile = {};
  // Called first on each thread of the inter-op pool (0 is the caller of run()): sets its share of cores.
  std::function<void(int)> start_inter_thread = {};
};

struct Feed {
  Tensor placeholder;
  HostTensor value;
};

class Session {
 public:
  Session(Graph& graph, const Backend& backend, SessionOptions options = {});
  ~Session();

  // Values of the fetches, in order; an update gives an empty tensor, a variable the value after the run's updates.
  // Every placeholder that they need must be fed.
  std::vector<HostTensor> run(std::span<const Tensor> fetches, std::span<const Feed> feeds = {});
  std::vector<HostTensor> run(std::initializer_list<Tensor> fetches, std::initializer_list<Feed> feeds = {});

  // The program for these fetches, compiled now or earlier. Lives as long as the session. The first one decides the
  // layouts of the variables for all: where there are several, prepare the training step first.
  Executable& prepare(std::span<const Tensor> fetches);

  HostTensor value(Tensor variable) const;
  void assign(Tensor variable, const HostTensor& value);
  VariableStore& variables() { return store_; }
  const SessionOptions& options() const { return options_; }

 private:
  Graph& graph_;
  const Backend& backend_;
  SessionOptions options_;
  VariableStore store_;
  std::unique_ptr<InterOpPool> pool_;  // with more than one inter-op thread; outlives the executables
  std::map<std::vector<std::pair<NodeId, int>>, std::unique_ptr<Executable>> executables_;
};

}  // namespace trireme
