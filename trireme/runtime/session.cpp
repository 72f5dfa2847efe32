#include "trireme/runtime/session.hpp"

#include "trireme/base/error.hpp"
#include "trireme/plan/passes.hpp"
#include "trireme/runtime/batch_split.hpp"
#include "trireme/runtime/inter_op_pool.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme {

Session::Session(Graph& graph, const Backend& backend, SessionOptions options)
    : graph_(graph),
      backend_(backend),
      options_(std::move(options)),
      store_(std::make_unique<VariableStore>(graph, options_.seed, backend.device())) {
  if (options_.groups > 1 && options_.compile.inter_threads > 1) {
    bad_input("a batch cannot be split over {} groups of cores and also use {} inter-op threads; choose one of the two",
              options_.groups, options_.compile.inter_threads);
  }
  if (options_.groups > 1 && !backend_.splits_batches()) {
    bad_input("backend '{}' cannot split a batch over {} groups of cores; use one group", backend_.name(),
              options_.groups);
  }
  if (options_.replica.statistics != nullptr && (options_.groups > 1 || !backend_.splits_batches())) {
    bad_input(
        "batch statistics over {} replicas need one group of cores in each and a backend that can share them; "
        "there are {} groups and backend '{}'",
        options_.replica.replicas, options_.groups, backend_.name());
  }
  if (options_.compile.stages != nullptr && (options_.groups > 1 || options_.compile.inter_threads > 1)) {
    bad_input("the stages of a pipeline have one group of cores and one inter-op thread each");
  }
  options_.compile.owners = divide_by_rule(graph_, options_.compile.owners);
  if (options_.gradient_memory) store_->set_gradient_memory(options_.gradient_memory);
  if (options_.compile.inter_threads > 1) {
    pool_ = std::make_unique<InterOpPool>(options_.compile.inter_threads, options_.start_thread);
  } else {
    threads_ = std::make_unique<GroupThreads>(options_.groups, options_.start_thread);
  }
}

Session::~Session() = default;

Session::Key Session::key_of(std::span<const Tensor> fetches, BatchSizes batches) const {
  Key key{{}, std::move(batches)};
  for (const Tensor& fetch : fetches) {
    if (fetch.graph != &graph_) bad_input("a fetch is not a tensor of this session's graph");
    key.first.emplace_back(fetch.node, fetch.output);
  }
  return key;
}

Program Session::compile_program(std::span<const Tensor> fetches, const BatchSizes& batches) {
  VariableLayouts layouts = store_->layouts();
  CompileOptions options = options_.compile;
  options.batches = batches;
  Program program = compile(graph_, fetches, backend_, options, layouts);
  // The first program decides the variables' layouts; later ones adopt them.
  if (!store_->allocated()) {
    std::set<NodeId> own;
    for (const Buffer& buffer : program.buffers) {
      if (buffer.kind == MemoryKind::variable) own.insert(buffer.variable);
    }
    store_->allocate(layouts, options_.compile.owners,
                     {.type = backend_.shadow_type(options_.compile.precision),
                      .converter = [this](const TensorDesc& from,
                                          const Format& to) { return backend_.choose_reorder(from, to).kernel; }},
                     options_.compile.stages != nullptr ? &own : nullptr);
  }
  return program;
}

Executable& Session::prepare(std::span<const Tensor> fetches, const BatchSizes& batches) {
  auto& executable = executables_[key_of(fetches, batches)];
  if (!executable) {
    std::vector<Program> programs;
    programs.push_back(compile_program(fetches, batches));
    executable = std::make_unique<BatchSplit>(std::move(programs), *store_, options_.seed, options_.own_statistics,
                                              options_.replica, pool_.get(), threads_.get());
  }
  return executable->group(0);
}

BatchSplit& Session::prepare_split(std::span<const Tensor> fetches) {
  auto& split = splits_[key_of(fetches)];
  if (!split) {
    std::vector<Program> programs(options_.groups);
    programs[0] = compile_program(fetches);
    // On the threads that will run them: kernels are made for the calling thread's team. The second one alone: the
    // others reuse its timings, made with the layouts already fixed.
    const auto compile_groups = [&](int first, int last) {
      threads_->run([&](int group) {
        if (group >= first && group <= last) programs[group] = compile_program(fetches);
      });
    };
    if (options_.groups > 1) compile_groups(1, 1);
    if (options_.groups > 2) compile_groups(2, options_.groups - 1);
    // The first was compiled with open variable layouts, the others with those it chose.
    if (options_.groups > 1 && !same_instructions(programs[0], programs[1])) programs[0] = compile_program(fetches);
    split = std::make_unique<BatchSplit>(std::move(programs), *store_, options_.seed, options_.own_statistics,
                                         options_.replica, pool_.get(), threads_.get());
  }
  return *split;
}

// Of the feeds that differ from their placeholders in the first extent alone.
BatchSizes Session::other_batches(std::span<const Tensor> fetches, std::span<const Feed> feeds) const {
  BatchSizes batches;
  key_of(fetches);  // refuses those of other graphs
  const std::vector<bool> needed = needed_for(fetches, graph_);
  for (const auto& [placeholder, value] : feeds) {
    if (placeholder.graph != &graph_ || graph_.node(placeholder).as<op::Placeholder>() == nullptr) {
      bad_input("a value was fed to something that is not a placeholder of this session's graph{}",
                placeholder.graph == &graph_ ? fmt::format(": '{}'", graph_.node(placeholder).name) : "");
    }
    if (!needed[placeholder.node]) continue;
    Shape own = placeholder.shape();
    if (own.rank() == 0 || value.shape().rank() != own.rank() || value.shape()[0] == own[0]) continue;
    own[0] = value.shape()[0];
    if (own == value.shape() && own[0] > 0) batches.emplace(placeholder.node, own[0]);
  }
  return batches;
}

std::vector<HostTensor> Session::run(std::span<const Tensor> fetches, std::span<const Feed> feeds) {
  Executable& executable = prepare(fetches, other_batches(fetches, feeds));
  for (const NodeId id : executable.placeholders()) {
    bool fed = false;
    for (const Feed& feed : feeds) fed = fed || feed.placeholder.node == id;
    if (!fed) {
      bad_input("placeholder '{}' ({}) is needed by the fetches but was not fed", graph_.node(id).name,
                to_string(graph_.node(id).outputs[0].shape));
    }
  }
  for (const Feed& feed : feeds) {
    if (executable.needs(feed.placeholder)) executable.feed(feed.placeholder, feed.value);
  }
  executable.run();
  std::vector<HostTensor> values;
  for (int i = 0; i < std::ssize(fetches); ++i) values.push_back(executable.fetched(i));
  return values;
}

std::vector<HostTensor> Session::run(std::initializer_list<Tensor> fetches, std::initializer_list<Feed> feeds) {
  return run(std::span<const Tensor>(fetches.begin(), fetches.size()),
             std::span<const Feed>(feeds.begin(), feeds.size()));
}

HostTensor Session::value(Tensor variable) const { return store_->get(variable.node); }

void Session::assign(Tensor variable, const HostTensor& value) { store_->set(variable.node, value); }

}  // namespace trireme
