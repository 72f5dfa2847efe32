#include "trireme/parallel/all_reduce_sync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"

namespace trireme::parallel {
namespace {

// Counters wrap around; compared ones are never far apart.
bool reached(std::uint32_t counter, std::uint32_t number) { return static_cast<std::int32_t>(counter - number) >= 0; }

}  // namespace

AllReduceSync::AllReduceSync(comm::Communicator& communicator, ReplicaOptions options)
    : communicator_(communicator), options_(std::move(options)) {}

AllReduceSync::~AllReduceSync() {
  // The step ended halfway: the other replicas may never come.
  const bool half_way = !reached(done_.load(), released_.load());
  if (half_way) communicator_.interrupt();
  stopping_.store(true, std::memory_order_release);
  released_.fetch_add(1, std::memory_order_release);
  released_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (half_way) communicator_.abandon();
}

void AllReduceSync::configure(const Graph&, SessionOptions& options) {
  options.gradient_memory = [this](std::int64_t bytes) { return gradient_memory(bytes); };
}

std::shared_ptr<void> AllReduceSync::gradient_memory(std::int64_t bytes) {
  if (communicator_.size() == 1) return nullptr;
  arena_ = communicator_.share(bytes);
  if (arena_ != nullptr) return {arena_, arena_->data()};
  own_memory_ = std::make_shared<AlignedMemory>(bytes);
  return {own_memory_, own_memory_->at(0)};
}

void AllReduceSync::open(std::vector<GradientBucket> buckets, std::uint64_t) {
  if (communicator_.size() == 1) return;
  buckets_ = std::move(buckets);
  bucket_seconds_.assign(buckets_.size(), 0.0);
  reducer_ = std::make_unique<comm::AllReducer>(communicator_, options_.all_reduce, arena_.get());
  vote_reducer_ = std::make_unique<comm::AllReducer>(
      communicator_, comm::AllReduceOptions{.algorithm = comm::Algorithm::tree, .cost = options_.all_reduce.cost});
  orders_.resize(2 * buckets_.size());
  last_.assign(buckets_.size(), 0);
  if (options_.shard_optimizer) shard_ = std::make_unique<OptimizerShard>(communicator_, buckets_);
  name_spans();
  thread_ = std::thread([this] { work(); });
}

void AllReduceSync::name_spans() {
  labels_.assign(buckets_.size(), {});
  if (options_.recorder == nullptr) return;
  track_ = &options_.recorder->track("all-reduce");
  for (std::size_t index = 0; index < buckets_.size(); ++index) {
    for (const Work work : {Work::whole, Work::scatter, Work::gather}) {
      labels_[index][static_cast<std::size_t>(work)] =
          label_of(work, buckets_[index], index, *reducer_, *options_.recorder);
    }
  }
}

void AllReduceSync::begin_step(std::uint64_t step) {
  if (released_.load(std::memory_order_acquire) != done_.load(std::memory_order_acquire)) {
    fail(ErrorKind::failed, "step {} cannot begin: gradients of an earlier step are still being exchanged", step + 1);
  }
  // The thread is idle, so it does not read these now.
  step_ = step;
  first_ = ordered_ = done_.load(std::memory_order_acquire);
}

void AllReduceSync::release(std::uint32_t number) {
  released_.store(number, std::memory_order_release);
  released_.notify_one();
}

void AllReduceSync::order(const Order& order) {
  orders_[ordered_ - first_] = order;
  last_[order.bucket] = ++ordered_;
  if (options_.overlap) release(ordered_);
}

bool AllReduceSync::done(int bucket) {
  // In this order: a failure raises the counter that is read first.
  return reached(done_.load(std::memory_order_acquire), last_[bucket]) && !failed_.load(std::memory_order_acquire);
}

void AllReduceSync::wait(int bucket) {
  if (!options_.overlap) release(ordered_);
  // No spinning: the other thread may need this core.
  for (std::uint32_t now = done_.load(std::memory_order_acquire);
       !reached(now, last_[bucket]) && !failed_.load(std::memory_order_acquire);
       now = done_.load(std::memory_order_acquire)) {
    done_.wait(now, std::memory_order_acquire);
  }
  if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(error_);
}

void AllReduceSync::work() noexcept {
  try {
    if (options_.start_thread) options_.start_thread();
    std::uint32_t number = 0;
    while (true) {
      while (released_.load(std::memory_order_acquire) == number) released_.wait(number, std::memory_order_acquire);
      if (stopping_.load(std::memory_order_acquire)) return;
      carry_out(orders_[number - first_]);
      ++number;
      done_.store(number, std::memory_order_release);
      done_.notify_one();
    }
  } catch (...) {
    error_ = std::current_exception();
    failed_.store(true, std::memory_order_release);
    done_.fetch_add(1, std::memory_order_release);  // so that a waiter looks
    done_.notify_all();
  }
}

void AllReduceSync::carry_out(const Order& order) {
  const auto index = static_cast<std::size_t>(order.bucket);
  const GradientBucket& bucket = buckets_[index];
  if (order.work == Work::gather) shard_->update(bucket, order.bucket, order.learning_rate, step_);
  const auto start = SteadyClock::now();
  const std::int64_t number = order.bucket + 1 + (order.work == Work::gather ? std::ssize(buckets_) : 0);
  const perf::ScopedSpan span(track_, labels_[index][static_cast<std::size_t>(order.work)], number);
  fmt::memory_buffer context;  // on the stack
  fmt::format_to(std::back_inserter(context), "bucket {} of {}, '{}', in step {}", index + 1, buckets_.size(),
                 bucket.name, step_ + 1);
  communicator_.set_context({context.data(), context.size()});
  if (order.work == Work::gather) {
    for (const std::span<float> part : bucket.values) reducer_->all_gather(part);
    bucket_seconds_[index] += seconds_since(start);
  } else {
    reduce(order);
    bucket_seconds_[index] = seconds_since(start);
  }
}

void AllReduceSync::reduce(const Order& order) {
  weigh(buckets_[order.bucket], weight_);
  for (const std::span<float> part : buckets_[order.bucket].parts) {
    if (order.work == Work::scatter) {
      reducer_->reduce_scatter(part, comm::Reduction::mean);
    } else {
      reducer_->reduce(part, comm::Reduction::mean);
    }
  }
  if (order.bucket + 1 < std::ssize(buckets_)) return;
  agreed_ = vote_;
  vote_reducer_->reduce({&agreed_, 1}, comm::Reduction::sum);
}

void AllReduceSync::pull_state() {
  if (shard_) shard_->collect();
}

void AllReduceSync::drop_state() {
  if (shard_) shard_->discard();
}

}  // namespace trireme::parallel
