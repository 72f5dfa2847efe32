#include "trireme/ps/shard.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trireme/base/clock.hpp"
#include "trireme/optim/apply_rule.hpp"

namespace trireme::ps {

Shard::Shard(std::uint32_t index, ChunkSetup chunk, const Setup& setup, const Crowd& crowd)
    : index_(index),
      chunk_(std::move(chunk)),
      setup_(setup),
      crowd_(crowd),
      values_(std::make_shared<AlignedMemory>(chunk_.elements * static_cast<std::int64_t>(sizeof(float)))),
      gradients_(crowd.here.size()),
      clocks_(crowd.here.size()) {
  for (int state_index = 0; state_index < op::state_count(chunk_.rule.kind); ++state_index) {
    const AlignedMemory& state = states_.emplace_back(values_->bytes());
    std::ranges::fill(floats_in(state), op::initial_state(chunk_.rule.kind, state_index));
  }
}

std::span<float> Shard::floats_in(const AlignedMemory& memory) const {
  return {static_cast<float*>(memory.at(0)), static_cast<std::size_t>(chunk_.elements)};
}

bool Shard::waits(int worker) const {
  return std::ranges::any_of(waiting_, [worker](const Waiting& waiting) { return waiting.push.worker == worker; });
}

std::span<float> Shard::gradient(int worker) {
  if (waits(worker)) return {};
  AlignedMemory& memory = gradients_[worker];
  if (memory.bytes() == 0) memory = AlignedMemory(chunk_.elements * static_cast<std::int64_t>(sizeof(float)));
  return floats_in(memory);
}

void Shard::add(int worker, const Header& header) { waiting_.push_back({{worker, header}, SteadyClock::now()}); }

void Shard::resume(int worker) {
  const std::uint64_t slowest = slowest_clock();
  std::uint64_t& clock = clocks_[worker];
  clock = slowest == UINT64_MAX ? 0 : slowest;
}

int Shard::required() const {
  const auto workers = static_cast<int>(crowd_.active.size());
  const auto active = static_cast<int>(std::count(crowd_.active.begin(), crowd_.active.end(), true));
  return std::max(1, std::min(workers - setup_.backup_workers, active));
}

bool Shard::begin_update() {
  if (updating_) return false;
  chosen_.clear();
  weights_.clear();
  chosen_workers_.clear();
  votes_ = 0;
  if (setup_.mode == Mode::synchronous) {
    choose_synchronous();
  } else {
    choose_asynchronous();
  }
  if (chosen_workers_.empty()) return false;
  for (const int worker : chosen_workers_) {
    chosen_.push_back(static_cast<const float*>(gradients_[worker].at(0)));
  }
  copies_first_ = values_.use_count() > 1;  // these values are being sent
  updating_ = true;
  return true;
}

// The first gradients to arrive, summed in worker order so that the sum does not depend on timing.
void Shard::choose_synchronous() {
  std::vector<Waiting*> current;
  for (Waiting& waiting : waiting_) {
    if (is_current(waiting.push)) current.push_back(&waiting);
  }
  const auto needed = static_cast<std::size_t>(required());
  if (current.size() < needed) return;
  current.resize(needed);
  std::sort(current.begin(), current.end(),
            [](const Waiting* a, const Waiting* b) { return a->push.worker < b->push.worker; });
  for (Waiting* waiting : current) {
    waiting->applied = true;
    chosen_workers_.push_back(waiting->push.worker);
    weights_.push_back(waiting->push.header.weight);
    votes_ += waiting->push.header.vote;
    learning_rate_ = waiting->push.header.learning_rate;
  }
}

void Shard::choose_asynchronous() {
  const auto next =
      std::find_if(waiting_.begin(), waiting_.end(), [](const Waiting& waiting) { return !waiting.applied; });
  if (next == waiting_.end()) return;
  next->applied = true;
  chosen_workers_.push_back(next->push.worker);
  weights_.push_back(next->push.header.weight);
  votes_ = next->push.header.vote;
  learning_rate_ = next->push.header.learning_rate;
}

void Shard::update() {
  if (copies_first_) {
    if (!spare_) spare_ = std::make_shared<AlignedMemory>(values_->bytes());
    std::memcpy(spare_->at(0), values_->at(0), static_cast<std::size_t>(chunk_.elements) * sizeof(float));
    std::swap(values_, spare_);
  }
  std::vector<float*> states;
  for (AlignedMemory& state : states_) states.push_back(static_cast<float*>(state.at(0)));
  const op::Rates<float> rates = op::rates_at(chunk_.rule, learning_rate_, setup_.first_step + version_);
  const MeanGradient mean{.gradients = chosen_, .weights = weights_, .count = static_cast<int>(chosen_.size())};
  apply_mean(chunk_.rule, rates, {.values = values().data(), .states = states}, mean,
             {.begin = 0, .count = chunk_.elements});
}

void Shard::end_update(Counters& counters) {
  updating_ = false;
  if (spare_.use_count() > 1) spare_.reset();  // still being sent, and owned by the sender
  for (const Waiting& waiting : waiting_) {
    if (!waiting.applied || setup_.mode == Mode::synchronous) continue;
    if (waiting.push.worker != chosen_workers_.front()) continue;
    const auto missed = static_cast<std::int64_t>(version_ - waiting.push.header.version);
    counters.stale_updates += missed;
    counters.most_stale = std::max(counters.most_stale, missed);
  }
  for (const int worker : chosen_workers_) ++clocks_[worker];
  agreed_ = votes_;
  ++version_;
  ++counters.updates;
}

std::uint64_t Shard::slowest_clock() const {
  std::uint64_t slowest = UINT64_MAX;
  for (std::size_t worker = 0; worker < clocks_.size(); ++worker) {
    if (crowd_.active[worker]) slowest = std::min(slowest, clocks_[worker]);
  }
  return slowest;
}

std::int64_t Shard::lead(int worker) const {
  const std::uint64_t clock = clocks_[worker], slowest = slowest_clock();
  return clock > slowest ? static_cast<std::int64_t>(clock - slowest) : 0;
}

bool Shard::may_answer(const Waiting& waiting) const {
  if (setup_.mode == Mode::synchronous)
    return waiting.push.header.version < version_;  // part of the update, or too late
  return waiting.applied && (setup_.staleness < 0 || lead(waiting.push.worker) <= setup_.staleness);
}

std::vector<Push> Shard::take_answers(Counters& counters) {
  std::vector<Push> answers;
  if (updating_) return answers;
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    const auto worker = static_cast<std::size_t>(waiting.push.worker);
    if (!crowd_.here[worker]) return true;
    if (!may_answer(waiting)) return false;
    if (!waiting.applied) ++counters.dropped;
    counters.most_lead = std::max(counters.most_lead, lead(waiting.push.worker));
    answers.push_back(waiting.push);
    return true;
  });
  return answers;
}

std::vector<Pull> Shard::take_pulls() {
  if (updating_) return {};
  return std::exchange(pulls_, {});
}

std::optional<SteadyClock::time_point> Shard::waiting_since() const {
  if (waiting_.empty() || updating_) return std::nullopt;
  return std::min_element(waiting_.begin(), waiting_.end(),
                          [](const Waiting& a, const Waiting& b) { return a.since < b.since; })
      ->since;
}

std::vector<int> Shard::missing() const {
  std::vector<int> workers;
  for (std::size_t worker = 0; worker < clocks_.size(); ++worker) {
    const bool is_slowest = setup_.mode == Mode::synchronous || clocks_[worker] == slowest_clock();
    if (crowd_.active[worker] && !waits(static_cast<int>(worker)) && is_slowest)
      workers.push_back(static_cast<int>(worker));
  }
  return workers;
}

}  // namespace trireme::ps
