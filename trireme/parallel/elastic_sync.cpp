#include "trireme/parallel/elastic_sync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/parallel/bucket_work.hpp"

namespace trireme::parallel {
namespace {

using namespace std::chrono_literals;

// From a failing exchange to the launcher's word on who is gone: longer than it waits for silent hosts.
constexpr auto kLongestWithoutWord = 15s;
constexpr auto kLook = 100ms;

comm::Team all_of(const comm::Communicator& communicator) {
  comm::Team team{.epoch = 1, .ranks = std::vector<int>(communicator.size())};
  std::iota(team.ranks.begin(), team.ranks.end(), 0);
  return team;
}

}  // namespace

ElasticSync::ElasticSync(comm::Communicator& everybody, comm::TeamSource& teams, ReplicaOptions options,
                         std::function<double()> loss)
    : teams_(teams),
      options_(std::move(options)),
      loss_(std::move(loss)),
      everybody_(everybody.split(0, everybody.rank())),
      team_(all_of(everybody)),
      communicator_(everybody_->successor(team_.ranks, team_.epoch)) {
  if (options_.timeout.count() > 0) everybody_->set_timeout(options_.timeout);
  committed_.by = team_;
}

ElasticSync::~ElasticSync() {
  teams_.set_on_news({});
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    communicator_->interrupt();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  // The step may have ended half-way: nothing may touch gradients after this.
  if (!communicator_->retire()) everybody_->abandon();
}

void ElasticSync::open(std::vector<GradientBucket> buckets, std::uint64_t) {
  buckets_ = std::move(buckets);
  bucket_seconds_.assign(buckets_.size(), 0.0);
  std::int64_t bytes = 0;
  for (const GradientBucket& bucket : buckets_) {
    copies_at_.push_back(bytes);
    bytes += bucket.bytes();
  }
  copies_ = AlignedMemory(bytes);
  make_reducers();
  labels_.assign(buckets_.size(), 0);
  if (options_.recorder != nullptr) {
    track_ = &options_.recorder->track("all-reduce");
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      labels_[i] = label_of(AllReducePart::whole, buckets_[i], i, *reducer_, *options_.recorder);
    }
  }
  teams_.set_on_news([this] {
    const std::lock_guard lock(mutex_);
    if (is_outdated()) communicator_->interrupt();  // else the thread has heard of it by itself
    changed_.notify_all();
  });
  thread_ = std::thread([this] { work(); });
}

void ElasticSync::make_reducers() {
  communicator_->set_timeout(everybody_->timeout());
  communicator_->set_context("preparing the all-reduce");
  reducer_ = std::make_unique<comm::AllReducer>(*communicator_, options_.all_reduce);
  vote_reducer_ = std::make_unique<comm::AllReducer>(
      *communicator_, comm::AllReduceOptions{.algorithm = comm::Algorithm::tree, .cost = options_.all_reduce.cost});
}

void ElasticSync::begin_step(std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  if (failed_) std::rethrow_exception(error_);
  if (commits_ != begun_) {
    fail(ErrorKind::failed, "step {} cannot begin: gradients of an earlier step are still being exchanged", step + 1);
  }
  step_ = step;
  has_delay_ = std::exchange(expects_delay_, false);
  ++begun_;
}

// In order of the buckets.
void ElasticSync::start(int bucket) {
  const bool is_last = bucket + 1 == std::ssize(buckets_);
  const auto loss = is_last ? static_cast<float>(loss_()) : 0.0f;
  {
    const std::lock_guard lock(mutex_);
    if (is_last) own_loss_ = loss;
    ordered_ = bucket + 1;
    if (options_.overlap) released_ = ordered_;
  }
  changed_.notify_all();
}

bool ElasticSync::done(int) {
  return commits_.load(std::memory_order_acquire) == begun_ && !failed_.load(std::memory_order_acquire);
}

void ElasticSync::wait(int bucket) {
  std::unique_lock lock(mutex_);
  const bool is_committed = commits_ == begun_;
  if (!is_committed && ordered_ < std::ssize(buckets_)) {
    fail(ErrorKind::failed, "bucket {} is needed in the middle of a step, which is applied as a whole", bucket + 1);
  }
  if (!is_committed) released_ = ordered_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return commits_ == begun_ || failed_; });
  if (failed_) std::rethrow_exception(error_);
}

void ElasticSync::work() noexcept {
  try {
    if (options_.start_thread) options_.start_thread();
    while (wait_for_work()) {
      try {
        if (is_outdated()) {
          follow({});
        } else {
          reduce_next();
        }
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::failed) throw;
        follow(std::current_exception());
      }
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    failed_ = true;
  }
  changed_.notify_all();
}

// Others need this replica to follow at once, even if it computes. False: the end.
bool ElasticSync::wait_for_work() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopping_ || is_outdated() || carried_ < released_; });
  return !stopping_;
}

std::span<std::byte> ElasticSync::copy_of(int bucket, std::size_t part) {
  std::int64_t at = copies_at_[bucket];
  const GradientBucket& copied = buckets_[bucket];
  for (std::size_t i = 0; i < part; ++i) at += static_cast<std::int64_t>(copied.parts[i].size_bytes());
  return {static_cast<std::byte*>(copies_.at(at)), copied.parts[part].size_bytes()};
}

void ElasticSync::reduce_next() {
  const int index = carried_;
  const GradientBucket& bucket = buckets_[index];
  const auto start = SteadyClock::now();
  std::optional<perf::ScopedSpan> span(std::in_place, track_, labels_[index], index + 1);
  if (copied_ == index) {
    for (std::size_t part = 0; part < bucket.parts.size(); ++part) {
      std::memcpy(copy_of(index, part).data(), bucket.parts[part].data(), bucket.parts[part].size_bytes());
    }
    ++copied_;
  }
  fmt::memory_buffer context;  // on the stack
  fmt::format_to(std::back_inserter(context), "bucket {} of {}, '{}', in step {}", index + 1, buckets_.size(),
                 bucket.name, step_ + 1);
  communicator_->set_context({context.data(), context.size()});
  communicator_->set_timeout(has_delay_ ? comm::Communicator::kUnevenTimeout : everybody_->timeout());
  weigh(bucket, weight_);
  for (const std::span<float> part : bucket.parts) reducer_->reduce(part, comm::Reduction::mean);
  ++carried_;
  std::optional<Commit> step;
  if (carried_ == std::ssize(buckets_)) step = vote();
  bucket_seconds_[index] = seconds_since(start);
  span.reset();
  if (step) commit(*step);
}

ElasticSync::Commit ElasticSync::vote() {
  voted_with_ = team_;
  std::array<float, 2> sums{vote_, own_loss_};
  vote_reducer_->reduce(sums, comm::Reduction::sum);
  return {.by = team_, .vote = sums[0], .loss = sums[1]};
}

void ElasticSync::commit(const Commit& step) {
  {
    const std::lock_guard lock(mutex_);
    committed_ = step;
    copied_ = carried_ = ordered_ = released_ = 0;
    commits_.fetch_add(1, std::memory_order_release);
  }
  changed_.notify_all();
}

// After news, or because an exchange has failed: without news, that was the job's error.
void ElasticSync::follow(std::exception_ptr problem) {
  while (leave_for_newer_team(problem)) {
    try {
      agree();
      make_reducers();
      return;
    } catch (const Error& error) {  // somebody else is lost: there will be another team
      if (error.kind() != ErrorKind::failed) throw;
      if (!problem) problem = std::current_exception();
    }
  }
}

// False: the end.
bool ElasticSync::leave_for_newer_team(const std::exception_ptr& problem) {
  std::optional<comm::Team> next;
  const auto start = SteadyClock::now();
  while (!(next = teams_.wait_for_newer(team_.epoch, kLook))) {
    if (stopping_) return false;
    if (SteadyClock::now() - start > kLongestWithoutWord) std::rethrow_exception(problem);
  }
  const auto is_member = [&](int rank) { return std::ranges::find(next->ranks, rank) != next->ranks.end(); };
  if (!is_member(everybody_->rank())) fail(ErrorKind::failed, "the others go on without this worker");
  for (const int rank : team_.ranks) {
    if (!is_member(rank)) everybody_->declare_lost(rank, "the launcher knows that it is gone");
  }
  const bool is_free = communicator_->retire();
  Epoch last{.communicator = {}, .reducer = std::move(reducer_), .vote_reducer = std::move(vote_reducer_)};
  {
    const std::lock_guard lock(mutex_);
    team_ = *std::move(next);
    last.communicator = std::exchange(communicator_, everybody_->successor(team_.ranks, team_.epoch));
    if (is_outdated() || stopping_) communicator_->interrupt();
  }
  if (!is_free) held_.push_back(std::move(last));
  return true;
}

// What the last commit of the others says about the step in progress. When this is known, all have left the old team.
void ElasticSync::agree() {
  struct State {
    std::uint64_t commits = 0;
    float vote = 0, loss = 0;
  };
  communicator_->set_timeout(everybody_->timeout());
  communicator_->set_context("agreeing on the last step after a loss");
  const std::vector<State> states =
      comm::all_gather_value(*communicator_, State{commits_, committed_.vote, committed_.loss});
  const State& furthest = *std::ranges::max_element(states, {}, &State::commits);
  if (commits_ < furthest.commits) return commit({.by = voted_with_, .vote = furthest.vote, .loss = furthest.loss});
  take_back();
}

void ElasticSync::take_back() {
  for (int index = 0; index < copied_; ++index) {
    const GradientBucket& bucket = buckets_[index];
    for (std::size_t part = 0; part < bucket.parts.size(); ++part) {
      std::memcpy(bucket.parts[part].data(), copy_of(index, part).data(), bucket.parts[part].size_bytes());
    }
  }
  carried_ = 0;
}

}  // namespace trireme::parallel
