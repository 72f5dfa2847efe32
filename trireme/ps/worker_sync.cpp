#include "trireme/ps/worker_sync.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"

namespace trireme::ps {

WorkerSync::WorkerSync(comm::Communicator& communicator, int workers, WorkerOptions options)
    : communicator_(communicator), workers_(workers), options_(std::move(options)) {
  if (communicator.rank() >= workers || communicator.size() <= workers) {
    bad_input(
        "with parameter servers, a worker must be one of the first {} ranks, with at least one server after them; this "
        "is rank {} of {}",
        workers, communicator.rank(), communicator.size());
  }
  for (int rank = workers; rank < communicator.size(); ++rank) {
    servers_.push_back({MessageReceiver(communicator, rank), MessageSender(communicator, rank), {}});
  }
}

WorkerSync::~WorkerSync() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ordered_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (!left_) communicator_.abandon();  // nobody may write variables or send gradients after this
}

void WorkerSync::configure(const Graph& graph, SessionOptions& options) {
  placement_ = std::make_unique<Placement>(graph, options_.placement, static_cast<int>(servers_.size()));
  options.compile.owners = placement_->owners();
}

void WorkerSync::open(std::vector<GradientBucket> buckets, std::uint64_t step) {
  buckets_ = std::move(buckets);
  cut_into_chunks();
  name_spans();
  exchange_initial_values(step);
  communicator_.set_context("");
  thread_ = std::thread([this] { work(); });
  pull();
}

void WorkerSync::cut_into_chunks() {
  const auto& variables = placement_->variables();
  for (int bucket = 0; bucket < std::ssize(buckets_); ++bucket) {
    const GradientBucket& from = buckets_[bucket];
    const auto found = std::find_if(variables.begin(), variables.end(), [&](const PlacedVariable& variable) {
      return variable.node == from.variables.front();
    });
    const auto variable = static_cast<std::size_t>(found - variables.begin());
    const int server = placement_->server_of(variable);
    for (std::size_t part = 0; part < from.parts.size(); ++part) {
      const auto elements = static_cast<std::int64_t>(from.parts[part].size());
      if (server >= 0) {
        add_chunks(bucket, server, part, {0, elements});
        continue;
      }
      int piece_server = 0;
      for (const ElementRange& cut : placement_->cuts(variable, elements))
        add_chunks(bucket, piece_server++, part, cut);
    }
  }
  missing_.assign(buckets_.size(), 0);
  const auto first = std::min_element(chunks_.begin(), chunks_.end(),
                                      [](const Chunk& a, const Chunk& b) { return a.priority < b.priority; });
  voting_chunk_ = static_cast<int>(first - chunks_.begin());
}

// A range of one part of a bucket, in pieces.
void WorkerSync::add_chunks(int bucket, int server, std::size_t part, ElementRange range) {
  const GradientBucket& from = buckets_[bucket];
  for (std::int64_t at = range.begin; at < range.end; at += options_.chunk_elements) {
    const std::int64_t end = std::min(at + options_.chunk_elements, range.end);
    const auto piece = [&](std::span<float> all) { return all.subspan(at, end - at); };
    std::vector<std::span<float>> arrays{piece(from.values[part])};
    for (const auto& state : from.states) arrays.push_back(piece(state[part]));
    std::vector<int>& on_server = servers_[server].chunks;
    on_server.push_back(static_cast<int>(chunks_.size()));
    chunks_.push_back({.bucket = bucket,
                       .server = server,
                       .index = static_cast<std::uint32_t>(on_server.size() - 1),
                       .gradients = piece(from.parts[part]),
                       .arrays = std::move(arrays),
                       .priority = from.first_use});
  }
}

void WorkerSync::name_spans() {
  constexpr std::size_t kSpans = 1 << 14;  // one per step
  traces_.assign(buckets_.size(), {});
  if (options_.recorder == nullptr) return;
  std::vector<std::set<int>> servers(buckets_.size());
  for (const Chunk& chunk : chunks_) servers[chunk.bucket].insert(chunk.server);
  for (std::size_t index = 0; index < buckets_.size(); ++index) {
    const GradientBucket& bucket = buckets_[index];
    const std::string name = fmt::format("bucket {}", index + 1);
    traces_[index].track = &options_.recorder->track(name + " to the servers and back", kSpans);
    traces_[index].label = options_.recorder->label({.name = name,
                                                     .kind = perf::SpanKind::communication,
                                                     .detail = bucket.name,
                                                     .bytes = bucket.bytes(),
                                                     .link_bytes = 2 * bucket.bytes(),  // gradients out, values in
                                                     .peers = fmt::format("ps {}", fmt::join(servers[index], ", "))});
  }
}

Setup WorkerSync::setup_for(const ServerLink& server, std::uint64_t step) const {
  Setup setup{options_, workers_, step};
  for (const int id : server.chunks) {
    const Chunk& chunk = chunks_[id];
    const GradientBucket& bucket = buckets_[chunk.bucket];
    setup.chunks.push_back({bucket.name, std::ssize(chunk.gradients), chunk.priority, bucket.rule});
  }
  return setup;
}

void WorkerSync::exchange_initial_values(std::uint64_t step) {
  communicator_.set_timeout(std::chrono::duration<double>(options_.timeout_seconds));
  communicator_.set_context("telling the servers what to hold");
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    send_text(communicator_, to_text(setup_for(servers_[i], step)), workers_ + static_cast<int>(i));
  }
  if (communicator_.rank() > 0) return;
  communicator_.set_context("initial values");
  // Chunk by chunk to all servers concurrently, so that none waits until the others have everything.
  std::size_t most = 0;
  for (const ServerLink& server : servers_) most = std::max(most, server.chunks.size());
  for (std::size_t index = 0; index < most; ++index) {
    std::vector<comm::Transfer> transfers;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (index >= servers_[i].chunks.size()) continue;
      const Chunk& chunk = chunks_[servers_[i].chunks[index]];
      for (const std::span<float> array : chunk.arrays) {
        if (array.data() != chunk.arrays.front().data() && step == 0) break;  // servers know the initial state
        transfers.push_back(
            communicator_.start_send(std::as_bytes(array), workers_ + static_cast<int>(i), kElementsTag));
      }
    }
    for (const comm::Transfer transfer : transfers) communicator_.wait(transfer);
  }
}

void WorkerSync::throw_if_failed() const {
  if (error_) std::rethrow_exception(error_);
}

void WorkerSync::enqueue(Order order) {
  {
    const std::lock_guard lock(mutex_);
    throw_if_failed();
    orders_.push_back(order);
    // From now on what was ordered counts as missing.
    switch (order.kind) {
      case Kind::push:
        if (BucketTrace& trace = traces_[order.bucket]; trace.track != nullptr && trace.track->is_recording()) {
          trace.pushed = steady_nanoseconds();
        }
        for (const Chunk& chunk : chunks_) {
          if (chunk.bucket != order.bucket) continue;
          ++missing_[order.bucket];
          ++answers_missing_;
        }
        break;
      case Kind::pull:
        for (const Chunk& chunk : chunks_) {
          if (!has_array(chunk, order.array)) continue;
          ++missing_[chunk.bucket];
          ++answers_missing_;
        }
        break;
      case Kind::ask:
        answers_missing_ += static_cast<int>(servers_.size());
        break;
      default:  // without an answer
        break;
    }
    if (!busy_since_ && answers_missing_ > 0) busy_since_ = SteadyClock::now();
  }
  ordered_.notify_one();
}

void WorkerSync::wait_until(const std::function<bool()>& condition) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ != nullptr || condition(); });
  throw_if_failed();
}

void WorkerSync::begin_step(std::uint64_t) {
  const std::lock_guard lock(mutex_);
  vote_missing_ = true;
  if (options_.replicated) acknowledgements_missing_ = static_cast<int>(chunks_.size());
}

void WorkerSync::start(int bucket) {
  const GradientBucket& completed = buckets_[bucket];
  const Order order{.kind = Kind::push,
                    .bucket = bucket,
                    .learning_rate = *completed.learning_rate,
                    .weight = weight_,
                    .vote = vote_};
  if (options_.overlap) return enqueue(order);
  held_back_.push_back(order);
  if (held_back_.size() < buckets_.size()) return;
  for (const Order& held : held_back_) enqueue(held);
  held_back_.clear();
}

void WorkerSync::check() {
  if (!has_failed_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  throw_if_failed();
}

bool WorkerSync::done(int bucket) {
  const std::lock_guard lock(mutex_);
  return error_ == nullptr && missing_[bucket] == 0;
}

void WorkerSync::wait(int bucket) {
  wait_until([&] { return missing_[bucket] == 0; });
}

// The votes come with what the next step needs first and would wait for anyway.
void WorkerSync::end_step() {
  if (options_.replicated || !options_.overlap) {
    settle();
  } else if (is_lock_step()) {
    wait_until([&] { return !vote_missing_; });
  }
  const std::lock_guard lock(mutex_);
  const auto now = SteadyClock::now();
  if (busy_since_) {
    busy_seconds_ += std::chrono::duration<double>(now - *busy_since_).count();
    busy_since_ = now;
  }
  step_seconds_ = busy_seconds_;
  busy_seconds_ = 0;
}

void WorkerSync::settle() {
  if (!thread_.joinable()) return;
  wait_until([&] { return answers_missing_ == 0; });
}

void WorkerSync::pull() {
  settle();
  enqueue({.kind = Kind::pull});
  settle();
  stop_timing();
}

void WorkerSync::pull_state() {
  settle();
  std::size_t most = 0;
  for (const Chunk& chunk : chunks_) most = std::max(most, chunk.arrays.size());
  for (std::uint32_t array = 1; array < most; ++array) {
    enqueue({.kind = Kind::pull, .array = array});
    settle();
  }
  stop_timing();
}

// Requests between steps do not count as the next step's communication.
void WorkerSync::stop_timing() {
  const std::lock_guard lock(mutex_);
  busy_seconds_ = 0;
}

std::vector<std::string> WorkerSync::server_statistics() {
  settle();
  enqueue({.kind = Kind::ask});
  settle();
  stop_timing();
  std::vector<std::string> texts;
  for (const ServerLink& server : servers_) texts.push_back(server.text);
  return texts;
}

void WorkerSync::rest() {
  settle();
  enqueue({.kind = Kind::rest});
}

void WorkerSync::call_end() { enqueue({.kind = Kind::end}); }

void WorkerSync::leave() {
  settle();
  enqueue({.kind = Kind::leave});
  wait_until([&] { return left_; });
}

float WorkerSync::agreed() const {
  const std::lock_guard lock(mutex_);
  return is_lock_step() ? agreed_ : vote_;
}

}  // namespace trireme::ps
