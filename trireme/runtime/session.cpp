#include "trireme/runtime/session.hpp"

#include "trireme/base/error.hpp"
#include "trireme/runtime/inter_op_pool.hpp"

namespace trireme {

Session::Session(Graph& graph, const Backend& backend, SessionOptions options)
    : graph_(graph), backend_(backend), options_(std::move(options)), store_(graph, options_.seed) {
  if (options_.compile.inter_threads > 1) {
    pool_ = std::make_unique<InterOpPool>(options_.compile.inter_threads, options_.start_inter_thread);
  }
}

Session::~Session() = default;

Executable& Session::prepare(std::span<const Tensor> fetches) {
  std::vector<std::pair<NodeId, int>> key;
  for (const Tensor& fetch : fetches) {
    if (fetch.graph != &graph_) bad_input("a fetch is no tensor of this session's graph");
    key.emplace_back(fetch.node, fetch.output);
  }
  auto& executable = executables_[key];
  if (!executable) {
    VariableLayouts layouts = store_.layouts();
    Program program = compile(graph_, fetches, backend_, options_.compile, layouts);
    // The first program decides the layouts of the variables; later ones take them as they are.
    if (!store_.allocated()) store_.allocate(layouts);
    executable = std::make_unique<Executable>(std::move(program), store_, options_.seed, pool_.get());
  }
  return *executable;
}

std::vector<HostTensor> Session::run(std::span<const Tensor> fetches, std::span<const Feed> feeds) {
  Executable& executable = prepare(fetches);
  for (const NodeId id : executable.placeholders()) {
    bool fed = false;
    for (const Feed& feed : feeds) fed = fed || feed.placeholder.node == id;
    if (!fed) {
      bad_input("placeholder '{}' ({}) is needed by what is fetched, but was not fed", graph_.node(id).name,
                to_string(graph_.node(id).outputs[0].shape));
    }
  }
  for (const Feed& feed : feeds) {
    if (feed.placeholder.graph != &graph_ || graph_.node(feed.placeholder).as<op::Placeholder>() == nullptr) {
      bad_input("a value was fed to what is no placeholder of this session's graph{}",
                feed.placeholder.graph == &graph_ ? fmt::format(": '{}'", graph_.node(feed.placeholder).name) : "");
    }
    if (executable.needs(feed.placeholder)) executable.feed(feed.placeholder, feed.value);
  }
  executable.run();
  std::vector<HostTensor> values;
  for (int i = 0; i < static_cast<int>(fetches.size()); ++i) values.push_back(executable.fetched(i));
  return values;
}

std::vector<HostTensor> Session::run(std::initializer_list<Tensor> fetches, std::initializer_list<Feed> feeds) {
  return run(std::span<const Tensor>(fetches.begin(), fetches.size()),
             std::span<const Feed>(feeds.begin(), feeds.size()));
}

HostTensor Session::value(Tensor variable) const { return store_.get(variable.node); }

void Session::assign(Tensor variable, const HostTensor& value) { store_.set(variable.node, value); }

}  // namespace trireme
