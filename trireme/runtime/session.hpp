// Runs parts of a graph, like TensorFlow's Session. Owns variables and programs. In loops, run a prepare()d Executable.
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
  int groups = 1;               // of cores, for prepare_split(); excludes several inter-op threads
  bool own_statistics = false;  // see batch_split.hpp
  ReplicaPlace replica = {};    // if batch statistics span replicas in other processes
  // Provides the gradients' memory; see VariableStore::set_gradient_memory().
  std::function<std::shared_ptr<void>(std::int64_t bytes)> gradient_memory = {};
  // Called first on each inter-op or group thread (0 is the caller of run()): sets its share of cores.
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

  // Values of the fetches; empty for an update, new values for variables. All needed placeholders must be fed. Unless
  // it trains, a run may have another batch size than the graph: what is fed decides. Each size has a program of its
  // own.
  std::vector<HostTensor> run(std::span<const Tensor> fetches, std::span<const Feed> feeds = {});
  std::vector<HostTensor> run(std::initializer_list<Tensor> fetches, std::initializer_list<Feed> feeds = {});

  // The compiled program, owned by the session. The first one decides the variables' layouts: prepare training first.
  Executable& prepare(std::span<const Tensor> fetches, const BatchSizes& batches = {});
  // The same for a batch split over the session's groups; the graph is for one group's share.
  BatchSplit& prepare_split(std::span<const Tensor> fetches);

  HostTensor value(Tensor variable) const;
  void assign(Tensor variable, const HostTensor& value);
  VariableStore& variables() { return *store_; }
  const SessionOptions& options() const { return options_; }

 private:
  using Key = std::pair<std::vector<std::pair<NodeId, int>>, BatchSizes>;  // nodes and outputs of the fetches
  Key key_of(std::span<const Tensor> fetches, BatchSizes batches = {}) const;
  Program compile_program(std::span<const Tensor> fetches, const BatchSizes& batches = {});
  BatchSizes other_batches(std::span<const Tensor> fetches, std::span<const Feed> feeds) const;

  Graph& graph_;
  const Backend& backend_;
  SessionOptions options_;
  std::unique_ptr<VariableStore> store_;
  // These outlive the executables.
  std::unique_ptr<InterOpPool> pool_;  // with more than one inter-op thread
  std::unique_ptr<GroupThreads> threads_;
  std::map<Key, std::unique_ptr<BatchSplit>> executables_;  // of one group each
  std::map<Key, std::unique_ptr<BatchSplit>> splits_;
};

}  // namespace trireme
