#include "trireme/parallel/replicas.hpp"

#include <cstring>

#include "trireme/base/error.hpp"
#include "trireme/base/hash.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/parallel/all_reduce_sync.hpp"
#include "trireme/runtime/batch_split.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme::parallel {
namespace {

// The first rank whose entry differs from rank 0's; -1 if all are equal.
template <typename Value>
int first_different(const std::vector<Value>& of_ranks) {
  for (std::size_t rank = 1; rank < of_ranks.size(); ++rank) {
    if (of_ranks[rank] != of_ranks[0]) return static_cast<int>(rank);
  }
  return -1;
}

}  // namespace

// Runs inside the step on the computing thread, so it has its own communicator.
class Replicas::Statistics : public ReplicaStatistics {
 public:
  explicit Statistics(std::unique_ptr<comm::Communicator> communicator) : communicator_(std::move(communicator)) {
    communicator_->set_context("batch statistics");
  }

  void set_timeout(std::chrono::duration<double> timeout) { communicator_->set_timeout(timeout); }

  void gather(std::span<void* const> blocks, std::int64_t bytes) noexcept override {
    if (error_) return;
    try {
      exchange(blocks, bytes);
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  void check() const override {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void exchange(std::span<void* const> blocks, std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    all_.resize(size * blocks.size());  // grows only in the first step
    const auto own = static_cast<std::size_t>(communicator_->rank());
    comm::all_gather(*communicator_, {static_cast<const std::byte*>(blocks[own]), size}, all_);
    for (std::size_t replica = 0; replica < blocks.size(); ++replica) {
      if (replica != own) std::memcpy(blocks[replica], all_.data() + replica * size, size);
    }
  }

  std::unique_ptr<comm::Communicator> communicator_;
  std::vector<std::byte> all_;
  std::exception_ptr error_;
};

Replicas::Replicas(comm::Communicator& communicator, ReplicaOptions options)
    : Replicas(communicator, nullptr, std::move(options)) {
  sync_communicator_ = communicator.split(0, communicator.rank());
  sync_ = std::make_unique<AllReduceSync>(*sync_communicator_, options_);
}

Replicas::Replicas(comm::Communicator& communicator, std::unique_ptr<GradientSync> sync, ReplicaOptions options)
    : options_(std::move(options)), communicator_(communicator.split(0, communicator.rank())), sync_(std::move(sync)) {
  if (options_.sync_batch_norm && size() > 1) {
    statistics_ = std::make_unique<Statistics>(communicator.split(0, communicator.rank()));
  }
}

Replicas::~Replicas() = default;

void Replicas::set_communicator(comm::Communicator& communicator) {
  communicator_ = communicator.split(0, communicator.rank());
}

void Replicas::configure(const Graph& graph, SessionOptions& options) {
  sync_->configure(graph, options);
  if (statistics_) options.replica = {.statistics = statistics_.get(), .replica = rank(), .replicas = size()};
}

void Replicas::attach(Session& session, Executable& step) {
  open(session, step);
  set_exchange(step, {});
  check_agreement(session);
}

void Replicas::attach(Session& session, BatchSplit& step) {
  open(session, step.group(0));
  set_exchange(step, {});
  check_agreement(session);
}

void Replicas::open(Session& session, Executable& step) {
  if (attached_) bad_input("the replicas are already attached to a step; create others for another step");
  attached_ = true;
  communicator_->set_context("comparing programs");
  check_same_program(session, step);
  broadcast_values(session);
  if (options_.timeout.count() > 0) {
    communicator_->set_timeout(options_.timeout);
    if (sync_communicator_) sync_communicator_->set_timeout(options_.timeout);
    if (statistics_) statistics_->set_timeout(options_.timeout);
  }
  const Exchange kind = sync_->kind();
  const MemorySide side = kind == Exchange::reduce_on_device ? MemorySide::device : MemorySide::host;
  sync_->open(step.gradient_buckets(side), session.variables().step);
  session.variables().touch();
}

template <typename Step>
void Replicas::set_exchange(Step& step, GradientOptions options) const {
  options.exchange = exchange();
  step.set_exchange(options.exchange == Exchange::none ? nullptr : sync_.get(), options);
}

void Replicas::exchange_gradients(Executable& step, const GradientOptions& options) { set_exchange(step, options); }
void Replicas::exchange_gradients(BatchSplit& step, const GradientOptions& options) { set_exchange(step, options); }

bool Replicas::is_served() const { return trireme::is_served(sync_->kind()); }

// A single replica has nobody to reduce with.
Exchange Replicas::exchange() const {
  const Exchange kind = sync_->kind();
  return size() == 1 && (kind == Exchange::reduce || kind == Exchange::shard) ? Exchange::none : kind;
}

// Gradients are summed as stored: buckets, order and layouts must match.
void Replicas::check_same_program(Session& session, const Executable& step) {
  std::string text;
  for (const GradientBucket& bucket : step.gradient_buckets(MemorySide::device))
    text += fmt::format("{} {}\n", bucket.name, bucket.bytes());
  for (const NodeId id : session.variables().trainable()) {
    text += fmt::format("variable {} of shape {} as {}\n", session.variables().node(id).name,
                        to_string(session.variables().node(id).outputs[0].shape),
                        session.variables().layouts().at(id).name());
  }
  const std::vector<std::string> texts = comm::all_gather_text(*communicator_, text);
  const int other = first_different(texts);
  if (other < 0) return;
  const std::string &first = texts[0], &second = texts[other];
  std::size_t at = 0;
  while (at < first.size() && at < second.size() && first[at] == second[at]) ++at;
  const auto line_at = [at](const std::string& of) {
    const std::size_t begin = at == 0 ? 0 : of.rfind('\n', at - 1) + 1;
    return begin < of.size() ? of.substr(begin, of.find('\n', begin) - begin) : std::string("nothing");
  };
  fail(ErrorKind::failed,
       "ranks 0 and {} compiled different programs: '{}' and '{}'; use the same options and version, and --autotune "
       "off if the CPUs differ",
       other, line_at(first), line_at(second));
}

void Replicas::average_untrained(Session& session) {
  const std::span<std::byte> own = session.variables().untrained_arena();
  communicator_->set_context("averaging running statistics");
  comm::all_reduce(*communicator_, {reinterpret_cast<float*>(own.data()), own.size() / sizeof(float)},
                   comm::Reduction::mean);
  session.variables().put(own);
}

void Replicas::restore_values(Session& session) {
  if (!is_served()) return broadcast_values(session);
  sync_->pull();
  session.variables().touch();
}

void Replicas::broadcast_values(Session& session) {
  communicator_->set_context("initial values");
  VariableStore& store = session.variables();
  const auto broadcast = [&](std::span<std::byte> arena) {
    comm::broadcast(*communicator_, arena);
    store.put(arena);
  };
  if (is_served()) {  // the servers have the others
    broadcast(store.untrained_arena());
  } else {
    broadcast(store.value_arena());
    if (sync_->kind() != Exchange::shard) {  // otherwise divided by open()
      for (const std::span<std::byte> state : store.state_arenas()) broadcast(state);
    }
  }
  comm::broadcast(*communicator_, std::as_writable_bytes(std::span(&store.step, 1)));  // rules may depend on the step
}

void Replicas::check_agreement(Session& session) {
  if (size() == 1) return;
  sync_->settle();
  const VariableStore& store = session.variables();
  const std::vector<NodeId> ids = store.trainable();
  std::vector<std::uint64_t> hashes;
  for (const NodeId id : ids) hashes.push_back(hash_bytes(std::as_bytes(store.stored(id))));
  communicator_->set_context("comparing the replicas' values");
  std::vector<std::uint64_t> all(hashes.size() * static_cast<std::size_t>(size()));
  comm::all_gather(*communicator_, std::as_bytes(std::span(hashes)), std::as_writable_bytes(std::span(all)));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t at = i % hashes.size();
    if (all[i] == all[at]) continue;
    fail(ErrorKind::failed, "after {} steps the replicas differ: '{}' is not the same on rank {} as on rank 0",
         store.step, store.node(ids[at]).name, i / hashes.size());
  }
}

}  // namespace trireme::parallel
