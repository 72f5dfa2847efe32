#include "trireme/ps/server.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <nlohmann/json.hpp>
#include <thread>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/comm/backoff.hpp"

namespace trireme::ps {
namespace {

// Workers first compile and time kernels.
constexpr auto kSetupTimeout = std::chrono::hours(1);
constexpr auto kBetweenChecks = std::chrono::milliseconds(200);
constexpr auto kLastWords = std::chrono::seconds(1);
constexpr std::int64_t kMostUrgent = -1;

}  // namespace

// Threads that compute: several chunks are updated concurrently while the server's thread handles messages.
class Server::UpdatePool {
 public:
  UpdatePool(int threads, const std::function<void()>& start_thread, perf::Recorder* recorder);
  ~UpdatePool();  // drops what has not started

  void begin(Shard& shard);          // runs update() on one of the threads
  std::vector<Shard*> take_ended();  // those whose update() has returned since the last call
  bool is_busy() const { return under_way_ > 0; }

 private:
  void work(perf::Track* track);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Shard*> waiting_;
  std::vector<Shard*> ended_;
  bool stopping_ = false;
  int under_way_ = 0;  // as far as the caller knows
  std::vector<std::thread> threads_;
};

Server::UpdatePool::UpdatePool(int threads, const std::function<void()>& start_thread, perf::Recorder* recorder) {
  for (int i = 0; i < std::max(1, threads); ++i) {
    perf::Track* const track = recorder == nullptr ? nullptr : &recorder->track(fmt::format("update thread {}", i));
    threads_.emplace_back([this, start_thread, track] {
      if (start_thread) start_thread();
      work(track);
    });
  }
}

Server::UpdatePool::~UpdatePool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Server::UpdatePool::begin(Shard& shard) {
  ++under_way_;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(&shard);
  }
  wake_.notify_one();
}

std::vector<Shard*> Server::UpdatePool::take_ended() {
  if (under_way_ == 0) return {};
  std::vector<Shard*> ended;
  {
    const std::lock_guard lock(mutex_);
    std::swap(ended, ended_);
  }
  under_way_ -= static_cast<int>(ended.size());
  return ended;
}

void Server::UpdatePool::work(perf::Track* track) {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    Shard* shard = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    {
      const perf::ScopedSpan span(track, shard->label);
      shard->update();
    }
    lock.lock();
    ended_.push_back(shard);
  }
}

Server::Server(comm::Communicator& communicator, int workers, ServerOptions options)
    : communicator_(communicator), options_(std::move(options)) {
  crowd_.here.assign(workers, true);
  crowd_.active = crowd_.here;
  for (int worker = 0; worker < workers; ++worker) {
    workers_.push_back({MessageReceiver(communicator, worker), MessageSender(communicator, worker)});
  }
}

Server::~Server() {
  if (!ended_well_) communicator_.abandon();  // nobody may write into what is freed now
}

void Server::run() {
  try {
    serve_all();
    ended_well_ = true;
  } catch (const Error& error) {
    tell_workers(error.what());
    throw;
  }
}

// Otherwise they would only see that this server is gone.
void Server::tell_workers(const std::string& reason) {
  const auto text = std::make_shared<std::string>(reason);
  const Header header{.kind = Kind::failed, .chunk = static_cast<std::uint32_t>(text->size())};
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (crowd_.here[i]) workers_[i].outbox.add(kMostUrgent, header, std::as_bytes(std::span(*text)), text);
  }
  comm::Backoff backoff;
  const auto end = SteadyClock::now() + kLastWords;
  const auto deliver = [this](std::size_t i) {
    try {
      workers_[i].outbox.progress();
      return workers_[i].outbox.empty();
    } catch (const Error&) {
      return true;  // this worker cannot be told
    }
  };
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    while (crowd_.here[i] && !deliver(i) && SteadyClock::now() < end) communicator_.doze(backoff);
  }
}

void Server::serve_all() {
  receive_setup();
  receive_initial_values();
  name_spans();
  pool_ = std::make_unique<UpdatePool>(options_.threads, options_.start_thread, options_.recorder);
  comm::Backoff backoff;
  while (crowd_.count_here() > 0) {
    bool moved = false;
    for (int index = 0; index < std::ssize(workers_); ++index) moved = serve(index) || moved;
    for (Shard* shard : pool_->take_ended()) {
      shard->end_update(counters_);
      advance(*shard);
      moved = true;
    }
    if (SteadyClock::now() >= next_check_) check_times();
    if (moved) {
      backoff = {};
    } else if (pool_->is_busy()) {
      backoff.pause();  // the pool cannot wake a communicator
    } else {
      communicator_.doze(backoff);
    }
  }
}

void Server::receive_setup() {
  communicator_.set_timeout(kSetupTimeout);
  communicator_.set_context("waiting for the workers to say what they train");
  const std::string first = receive_text(communicator_, 0);
  for (int worker = 1; worker < std::ssize(workers_); ++worker) {
    if (receive_text(communicator_, worker) == first) continue;
    fail(ErrorKind::failed, "{} and {} train different models; all workers need the same options and version",
         name_of(0), name_of(worker));
  }
  setup_ = setup_from_text(first);
  communicator_.set_timeout(std::chrono::duration<double>(setup_.timeout_seconds));
  if (setup_.workers != std::ssize(workers_)) {
    fail(ErrorKind::failed, "{} expects {} workers, but this server has {}", name_of(0), setup_.workers,
         workers_.size());
  }
}

void Server::receive_initial_values() {
  communicator_.set_context("initial values");
  for (const ChunkSetup& chunk : setup_.chunks) {
    auto shard = std::make_unique<Shard>(static_cast<std::uint32_t>(shards_.size()), chunk, setup_, crowd_);
    const int arrays = setup_.first_step > 0 ? 1 + op::state_count(chunk.rule.kind) : 1;
    for (int array = 0; array < arrays; ++array) {
      const std::span<float> memory = shard->array(static_cast<std::uint32_t>(array));
      communicator_.receive(std::as_writable_bytes(memory), 0, kElementsTag);
    }
    shards_.push_back(std::move(shard));
  }
  communicator_.set_context("");
}

void Server::name_spans() {
  if (options_.recorder == nullptr) return;
  for (const auto& shard : shards_) {
    const ChunkSetup& chunk = shard->chunk();
    shard->label = options_.recorder->label({.name = fmt::format("update of chunk {}", shard->index() + 1),
                                             .kind = perf::SpanKind::optimizer,
                                             .detail = chunk.name,
                                             .bytes = chunk.elements * static_cast<std::int64_t>(sizeof(float))});
  }
}

bool Server::serve(int index) {
  if (!crowd_.here[index]) return false;
  try {
    return look_at_worker(index);
  } catch (const Error& error) {
    lose(index, error.what());
    return true;
  }
}

bool Server::look_at_worker(int index) {
  Worker& worker = workers_[index];
  bool moved = worker.outbox.progress();
  if (worker.left) {
    if (worker.outbox.empty()) leave(index);
    return moved;
  }
  switch (worker.inbox.progress()) {
    case MessageReceiver::State::waiting:
      // A transport that fails transfers with absent ranks has done so by now.
      if (communicator_.presence(index) == comm::Presence::lost) fail(ErrorKind::failed, "its connection has ended");
      break;
    case MessageReceiver::State::header:
      moved = true;
      obey(index, worker.inbox.header());
      break;
    case MessageReceiver::State::elements: {
      moved = true;
      const Header header = worker.inbox.header();
      worker.inbox.next();
      Shard& shard = *shards_[header.chunk];
      shard.add(index, header);
      advance(shard);
      break;
    }
  }
  return moved;
}

Shard& Server::checked_shard(int index, const Header& header) {
  if (header.chunk >= shards_.size()) {
    fail(ErrorKind::failed, "{} refers to chunk {}, but there are {}", name_of(index), header.chunk, shards_.size());
  }
  Shard& shard = *shards_[header.chunk];
  if (header.version > shard.version()) {
    fail(ErrorKind::failed, "{} refers to version {} of '{}', but the latest is {}", name_of(index), header.version,
         shard.chunk().name, shard.version());
  }
  return shard;
}

void Server::obey(int index, const Header& header) {
  Worker& worker = workers_[index];
  switch (header.kind) {
    case Kind::push: {
      Shard& shard = checked_shard(index, header);
      const std::span<float> memory = shard.gradient(index);
      if (memory.empty()) {
        fail(ErrorKind::failed, "{} sent gradients of '{}' twice in one step", name_of(index), shard.chunk().name);
      }
      ++counters_.pushes;
      if (options_.recorder != nullptr) options_.recorder->set_recording(header.traced != 0);
      wake(index);
      worker.inbox.expect(std::as_writable_bytes(memory));
      return;
    }
    case Kind::pull: {
      Shard& shard = checked_shard(index, header);
      if (!shard.has_array(header.array)) {
        fail(ErrorKind::failed, "{} asks for array {} of '{}', which does not exist", name_of(index), header.array,
             shard.chunk().name);
      }
      ++counters_.pulls;
      wake(index);
      shard.pull(index, header.array);
      advance(shard);
      break;
    }
    case Kind::rest:
      rest(index);
      break;
    case Kind::end:
      training_ended_ = true;
      break;
    case Kind::ask: {
      const auto text = std::make_shared<std::string>(statistics());
      const Header answer{.kind = Kind::text, .chunk = static_cast<std::uint32_t>(text->size())};
      worker.outbox.add(0, answer, std::as_bytes(std::span(*text)), text);
      break;
    }
    case Kind::leave:
      worker.left = true;
      break;
    default:
      fail(ErrorKind::failed, "{} sent a message of unknown kind ({})", name_of(index),
           static_cast<std::uint32_t>(header.kind));
  }
  worker.inbox.next();
}

// Starts possible updates and answers whom it can, after any change of a shard.
void Server::advance(Shard& shard) {
  for (const Push& push : shard.take_answers(counters_)) answer(push.worker, shard, push.header.wants_value != 0);
  for (const Pull& pull : shard.take_pulls()) {
    if (pull.array == 0) {
      answer(pull.worker, shard, true);
    } else {
      answer_with_state(pull, shard);
    }
  }
  if (shard.begin_update()) pool_->begin(shard);
}

void Server::answer(int index, const Shard& shard, bool with_value) {
  if (!crowd_.here[index]) return;
  const Header header{.kind = with_value ? Kind::value : Kind::acknowledge,
                      .chunk = shard.index(),
                      .version = shard.version(),
                      .vote = shard.agreed(),
                      .ended = training_ended_ ? 1U : 0U};
  MessageSender& outbox = workers_[index].outbox;
  if (with_value) {
    outbox.add(shard.chunk().priority, header, std::as_bytes(shard.values()), shard.hold());
  } else {
    outbox.add(shard.chunk().priority, header);
  }
}

// Sends a copy: the next update changes the state itself.
void Server::answer_with_state(const Pull& pull, const Shard& shard) {
  if (!crowd_.here[pull.worker]) return;
  const std::span<const float> state = shard.array(pull.array);
  const auto copy = std::make_shared<std::vector<float>>(state.begin(), state.end());
  const Header header{.kind = Kind::value, .chunk = shard.index(), .version = shard.version(), .array = pull.array};
  workers_[pull.worker].outbox.add(shard.chunk().priority, header, std::as_bytes(std::span(*copy)), copy);
}

void Server::leave(int index) {
  crowd_.here[index] = false;
  rest(index);
}

// Others may have been waiting for it.
void Server::rest(int index) {
  crowd_.active[index] = false;
  for (const auto& shard : shards_) advance(*shard);
}

void Server::wake(int index) {
  if (crowd_.active[index]) return;
  for (const auto& shard : shards_) shard->resume(index);
  crowd_.active[index] = true;
}

void Server::lose(int index, const std::string& reason) {
  crowd_.here[index] = false;
  const int left = crowd_.count_here();
  const std::string text = fmt::format("lost {}: {}", name_of(index), reason);
  if (left == 0) fail(ErrorKind::failed, "{}; no workers are left", text);
  const bool needed =
      setup_.mode == Mode::synchronous && left < static_cast<int>(workers_.size()) - setup_.backup_workers;
  if (needed) {
    fail(ErrorKind::failed, "{}; synchronous updates need {} workers, but {} are left", text,
         static_cast<int>(workers_.size()) - setup_.backup_workers, left);
  }
  log(fmt::format("{}; {}", text, left == 1 ? "1 worker continues" : fmt::format("{} workers continue", left)));
  rest(index);
}

void Server::check_times() {
  const auto now = SteadyClock::now();
  next_check_ = now + kBetweenChecks;
  for (const auto& shard : shards_) {
    const auto since = shard->waiting_since();
    if (!since || std::chrono::duration<double>(now - *since).count() < setup_.timeout_seconds) continue;
    fail(ErrorKind::failed, "{} did not send gradients of '{}' within {} of the first worker that did (--comm-timeout)",
         names_of(shard->missing()), shard->chunk().name, format_seconds(setup_.timeout_seconds));
  }
}

std::string Server::statistics() const {
  std::int64_t received = 0, sent = 0, bytes = 0;
  nlohmann::json workers = nlohmann::json::array();
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    received += workers_[i].inbox.bytes_received();
    sent += workers_[i].outbox.bytes_sent();
    workers.push_back(crowd_.here[i] ? "here" : workers_[i].left ? "left" : "lost");
  }
  for (const auto& shard : shards_) bytes += shard->chunk().elements * static_cast<std::int64_t>(sizeof(float));
  const double updates = static_cast<double>(std::max<std::int64_t>(1, counters_.updates));
  return nlohmann::json{{"chunks", shards_.size()},
                        {"variable_bytes", bytes},
                        {"mode", to_string(setup_.mode)},
                        {"workers", workers},
                        {"bytes_received", received},
                        {"bytes_sent", sent},
                        {"pushes", counters_.pushes},
                        {"pulls", counters_.pulls},
                        {"updates", counters_.updates},
                        {"dropped_gradients", counters_.dropped},
                        {"mean_staleness", static_cast<double>(counters_.stale_updates) / updates},
                        {"max_staleness", counters_.most_stale},
                        {"max_lead", counters_.most_lead}}
      .dump();
}

std::string Server::name_of(int index) const {
  const comm::Member& member = communicator_.members()[index];
  return fmt::format("{} ({})", member.name.empty() ? fmt::format("worker {}", index) : member.name, member.host);
}

std::string Server::names_of(const std::vector<int>& workers) const {
  std::vector<std::string> names;
  for (const int index : workers) names.push_back(name_of(index));
  return fmt::format("{}", fmt::join(names, ", "));
}

void Server::log(const std::string& text) const {
  if (options_.log) options_.log(text);
}

}  // namespace trireme::ps
