// Runs parts of a graph: run(fetches, feeds) as people know it from TensorFlow. Keeps the variables and the programs
// compiled so far. For a loop without look-ups, prepare() once and run the returned Executable.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "trireme/plan/compile_options.hpp"
#include "trireme/runtime/executable.hpp"

namespace trireme {

class Backend;
class BatchSplit;
class GroupThreads;

struct SessionOptions {
  std::uint64_t seed = 1;
  CompileOptions compile = {};
  int groups = 1;  // of cores, that prepare_split() divides a batch over; not together with several inter-op threads
  bool own_statistics = false;  // see batch_split.hpp
  ReplicaPlace replica = {};    // if batch statistics are taken over replicas in other processes
  // Gives the memory that gradients lie in; see VariableStore::set_gradient_memory().
  std::function<std::shared_ptr<void>(std::int64_t bytes)> gradient_memory = {};
  // Called first on each thread of the inter-op pool, or of the groups (0 is the caller of run()): sets its share of
  // cores.
  std::function<void(int)> start_thread = {};
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
  // layouts of the variables for all: if there are several, prepare the training step first.
  Executable& prepare(std::span<const Tensor> fetches);
  // The same for a batch that is split over the session's groups, the graph being that of one group's share.
  BatchSplit& prepare_split(std::span<const Tensor> fetches);

  HostTensor value(Tensor variable) const;
  void assign(Tensor variable, const HostTensor& value);
  VariableStore& variables() { return *store_; }
  const SessionOptions& options() const { return options_; }

 private:
  using Key = std::vector<std::pair<NodeId, int>>;  // nodes and outputs of the fetches
  Key key_of(std::span<const Tensor> fetches) const;
  Program compile_program(std::span<const Tensor> fetches);

  Graph& graph_;
  const Backend& backend_;
  SessionOptions options_;
  std::unique_ptr<VariableStore> store_;
  // Outlive the executables.
  std::unique_ptr<InterOpPool> pool_;  // with more than one inter-op thread
  std::unique_ptr<GroupThreads> threads_;
  std::map<Key, std::unique_ptr<BatchSplit>> executables_;  // of one group each
  std::map<Key, std::unique_ptr<BatchSplit>> splits_;
};

}  // namespace trireme
