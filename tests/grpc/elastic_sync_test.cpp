// Replicas in processes of their own that lose some of them in the middle of steps. The test takes the launcher's
// place: it sees who ends and tells the others. Whatever the moment, every step must be the mean over those who have
// committed it, and the same to the bit for all who are left.
#include "trireme/parallel/elastic_sync.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <condition_variable>
#include <random>
#include <set>
#include <thread>

#include "processes.hpp"
#include "tests/comm/suite_check.hpp"
#include "trireme/base/hash.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/local/run_local.hpp"

namespace trireme::comm::testkit {
namespace {

using namespace std::chrono_literals;

struct News {
  int epoch = 0;
  unsigned members = 0;  // a bit for each rank
};

// What the test writes to a pipe.
class PipeTeams : public TeamSource {
 public:
  PipeTeams(int news, int size) : news_(news) {
    for (int rank = 0; rank < size; ++rank) team_.ranks.push_back(rank);
    thread_ = std::thread([this] { listen(); });
    thread_.detach();  // the process ends by _Exit()
  }
  Team newest() const override {
    const std::lock_guard lock(mutex_);
    return team_;
  }
  std::optional<Team> wait_for_newer(int epoch, std::chrono::milliseconds longest) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, longest, [&] { return team_.epoch > epoch; })) return std::nullopt;
    return team_;
  }
  void set_on_news(std::function<void()> then) override {
    const std::lock_guard lock(calling_);
    then_ = std::move(then);
  }
  void begin_step(std::uint64_t) override {}

 private:
  void listen() {
    News news;
    while (read(news_, &news, sizeof news) == sizeof news) {
      {
        const std::lock_guard lock(mutex_);
        team_ = {.epoch = news.epoch, .ranks = {}};
        for (int rank = 0; rank < 32; ++rank) {
          if ((news.members >> rank & 1U) != 0) team_.ranks.push_back(rank);
        }
      }
      changed_.notify_all();
      const std::lock_guard lock(calling_);
      if (then_) then_();
    }
  }

  const int news_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Team team_;
  std::mutex calling_;
  std::function<void()> then_;
  std::thread thread_;
};

enum class Moment { before_the_step, after_a_bucket, in_the_exchange, after_the_step, stopped_for_a_moment };

struct Death {
  int rank = 0, step = 0;
  Moment moment = Moment::before_the_step;
  int microseconds = 0;  // in_the_exchange: after its begin
};

struct Scenario {
  int size = 4, steps = 6;
  Algorithm algorithm = Algorithm::automatic;
  Wire wire = Wire::fp32;
  std::vector<Death> deaths = {};
  bool is_told = true;  // by the test who is lost
};

// Whole numbers: their sums are exact in any order, in 16 bits as well.
float gradient(int rank, int step, std::size_t index) {
  return static_cast<float>((rank + 1) * ((step + static_cast<int>(index % 7)) % 5));
}

class Replica {
 public:
  Replica(World& world, PipeTeams& teams, const Scenario& run)
      : run_(run),
        rank_(world.communicator().rank()),
        sync_(world.communicator(), teams,
              {.all_reduce = {.algorithm = run.algorithm, .wire = run.wire}, .timeout = 30s},
              [this] { return static_cast<double>(rank_); }) {
    std::vector<GradientBucket> buckets(3);
    for (GradientBucket& bucket : buckets) {
      for (const std::size_t size : {200'000UL, 17UL, 40'003UL}) {
        memory_.emplace_back(size);
        bucket.parts.emplace_back(memory_.back());
      }
    }
    sync_.open(std::move(buckets), 0);
  }

  // Who has made each step, and a hash of all their values.
  std::string train() {
    std::string report;
    std::uint64_t hash = 0;
    for (int step = 0; step < run_.steps; ++step) {
      make_step(step);
      const Team& team = sync_.committed_by();
      check(step, team);
      for (const auto& values : memory_) hash = 31 * hash + hash_bytes(std::as_bytes(std::span(values)));
      std::string members;
      for (const int rank : team.ranks) members += fmt::format("{}", rank);
      report += fmt::format("{} ", members);
    }
    return fmt::format("{}{:x}", report, hash);
  }

 private:
  void make_step(int step) {
    sync_.set_vote(1);
    sync_.begin_step(step);
    const Death* death = nullptr;
    for (const Death& each : run_.deaths) {
      if (each.rank == rank_ && each.step == step) death = &each;
    }
    const auto dies = [&](Moment moment) { return death != nullptr && death->moment == moment; };
    if (dies(Moment::before_the_step)) raise(SIGKILL);
    if (dies(Moment::stopped_for_a_moment)) stop_for_a_moment();
    std::thread killer;
    if (dies(Moment::in_the_exchange)) {
      killer = std::thread([death] {
        usleep(death->microseconds);
        raise(SIGKILL);
      });
      killer.detach();
    }
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      for (std::size_t at = 0; at < memory_[i].size(); ++at) memory_[i][at] = gradient(rank_, step, at);
      if (i % 3 != 2) continue;
      sync_.start(static_cast<int>(i / 3));
      if (dies(Moment::after_a_bucket)) raise(SIGKILL);
    }
    sync_.wait(2);
    if (dies(Moment::after_the_step)) raise(SIGKILL);
  }

  static void stop_for_a_moment() {
    const pid_t self = getpid();
    if (fork() == 0) {
      usleep(1'500'000);
      kill(self, SIGCONT);
      _exit(0);
    }
    raise(SIGSTOP);
  }

  void check(int step, const Team& team) {
    float ranks = 0;
    for (const int rank : team.ranks) ranks += static_cast<float>(rank + 1);
    const auto count = static_cast<float>(team.ranks.size());
    expect(sync_.agreed() == count, "everyone's vote is counted once");
    expect(std::abs(sync_.mean_loss() - (ranks / count - 1)) < 1e-6, "the loss is that of those who took part");
    // Sums are exact; dividing rounds once, and a 16-bit wire once more.
    const float tolerance = run_.wire == Wire::fp32 ? 1e-6f : 1e-2f;
    for (const auto& values : memory_) {
      for (std::size_t at = 0; at < values.size(); ++at) {
        const float mean = gradient(0, step, at) * ranks / count;
        if (!(std::abs(values[at] - mean) <= tolerance * mean)) {
          throw std::runtime_error(fmt::format("step {}: value {} is {} and not {}", step, at, values[at], mean));
        }
      }
    }
  }

  const Scenario run_;
  const int rank_;
  std::vector<std::vector<float>> memory_;
  parallel::ElasticSync sync_;
};

struct Pipe {
  UniqueFd read, write;
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
};

// Tells those who are left whenever one ends without having said that it is done.
void supervise(const Scenario& run, std::vector<Pipe>& lives, std::vector<Pipe>& news) {
  unsigned members = (1U << run.size) - 1;
  int epoch = 1;
  std::set<int> open;
  for (int rank = 0; rank < run.size; ++rank) open.insert(rank);
  while (!open.empty()) {
    std::vector<pollfd> polled;
    polled.reserve(open.size());
    for (const int rank : open) polled.push_back({lives[rank].read.get(), POLLIN, 0});
    if (poll(polled.data(), polled.size(), 60'000) <= 0) return;
    const unsigned before = members;
    for (const int rank : std::set(open)) {
      char done = 0;
      pollfd own{lives[rank].read.get(), POLLIN, 0};
      if (poll(&own, 1, 0) == 0) continue;
      if (read(lives[rank].read.get(), &done, 1) == 0) members &= ~(1U << rank);
      open.erase(rank);
    }
    if (members == before || !run.is_told) continue;
    const News now{.epoch = ++epoch, .members = members};
    for (const int rank : open) {
      if (write(news[rank].write.get(), &now, sizeof now) < 0) continue;  // it has just ended
    }
  }
}

std::vector<Outcome> train(const Scenario& run) {
  signal(SIGPIPE, SIG_IGN);
  const auto tasks = local_tasks(run.size);
  std::vector<Pipe> lives(run.size), news(run.size);
  Processes processes;
  for (int rank = 0; rank < run.size; ++rank) {
    processes.start([&, rank] {
      for (int other = 0; other < run.size; ++other) {
        lives[other].read.reset();
        news[other].write.reset();
        if (other != rank) lives[other].write.reset();
      }
      const auto world = rpc::join(options_of(tasks, rank));
      PipeTeams teams(news[rank].read.get(), run.size);
      std::string report;
      {
        Replica replica(*world, teams, run);
        report = replica.train();
        if (write(lives[rank].write.get(), "d", 1) != 1) throw std::runtime_error("no supervisor");
        // Until all are done: others may still have to follow a loss.
        world->leave();
      }
      return report;
    });
    lives[rank].write.reset();
  }
  supervise(run, lives, news);
  std::vector<Outcome> outcomes;
  outcomes.reserve(run.size);
  for (int rank = 0; rank < run.size; ++rank) outcomes.push_back(processes.wait(rank));
  return outcomes;
}

// The ranks that have died, and the same report of all others. `words`: of who made the steps, if it is certain.
void expect_one_result(const Scenario& run, const std::string& words = "") {
  const auto outcomes = train(run);
  std::set<int> dead;
  for (const Death& death : run.deaths) dead.insert(death.rank);
  for (int rank = 0; rank < run.size; ++rank) {
    SCOPED_TRACE(fmt::format("rank {}", rank));
    if (dead.contains(rank)) {
      EXPECT_EQ(outcomes[rank].signal, SIGKILL);
      continue;
    }
    EXPECT_TRUE(outcomes[rank].is_success) << outcomes[rank].answer;
    EXPECT_EQ(outcomes[rank].answer, outcomes[0].answer);
  }
  EXPECT_NE(outcomes[0].answer.find(words), std::string::npos) << outcomes[0].answer;
}

// Rank 0 is played by the test: it takes the vote of rank 1, keeps the sum to itself, and both hear of a new team.
TEST(ElasticExchangeOfMany, WhoIsBehindLearnsTheVote) {
  Pipe news;
  run_local(2, [&](Communicator& everybody) {
    std::vector<float> values(100, everybody.rank() == 0 ? 1.0f : 3.0f);
    const AllReduceOptions tree{.algorithm = Algorithm::tree};
    if (everybody.rank() == 0) {
      const auto own = everybody.split(0, 0);  // the replica's too
      const auto first = own->successor({0, 1}, 1);
      AllReducer(*first, tree).reduce(values, Reduction::mean);
      std::array<float, 2> votes{};
      first->receive(std::as_writable_bytes(std::span(votes)), 1, kTreeTag);
      EXPECT_EQ(votes, (std::array<float, 2>{0, 5}));
      const News now{.epoch = 2, .members = 3};
      EXPECT_EQ(write(news.write.get(), &now, sizeof now), std::ssize(std::as_bytes(std::span(&now, 1))));
      struct State {
        std::uint64_t commits = 1;
        float vote = 7, loss = 12;
      };
      std::ignore = all_gather_value(*own->successor({0, 1}, 2), State{});
      return;
    }
    static auto* const teams = new PipeTeams(news.read.get(), 2);  // its thread goes on
    ASSERT_NO_THROW({
      parallel::ElasticSync sync(everybody, *teams, {.all_reduce = tree, .timeout = 30s}, [] { return 5.0; });
      std::vector<GradientBucket> buckets(1);
      buckets[0].parts.emplace_back(values);
      sync.open(std::move(buckets), 0);
      sync.begin_step(0);
      sync.start(0);
      sync.wait(0);
      EXPECT_EQ(values, std::vector<float>(100, 2));
      EXPECT_EQ(sync.agreed(), 7);
      EXPECT_EQ(sync.mean_loss(), 6);
      EXPECT_EQ(sync.committed_by().epoch, 1);
    });
  });
}

class ElasticExchange : public ::testing::TestWithParam<Algorithm> {};

TEST_P(ElasticExchange, SurvivorsFinishTheSameStep) {
  Scenario run{.algorithm = GetParam()};
  run.deaths = {{.rank = 2, .step = 2, .moment = Moment::before_the_step}};
  expect_one_result(run, "0123 0123 013 013 013 013 ");
  run.deaths[0].moment = Moment::after_a_bucket;
  expect_one_result(run, "0123 0123 013 013 013 013 ");
  run.deaths[0].moment = Moment::after_the_step;  // it has committed the step; so have the others, or will
  expect_one_result(run, "0123 0123 0123 013 013 013 ");
}

TEST_P(ElasticExchange, TheMomentDoesNotMatter) {
  std::mt19937 random(7);
  for (int i = 0; i < 6; ++i) {
    Scenario run{.algorithm = GetParam()};
    run.deaths = {{.rank = 1 + i % 3,
                   .step = 3,
                   .moment = Moment::in_the_exchange,
                   .microseconds = static_cast<int>(random() % 8000)}};
    SCOPED_TRACE(fmt::format("rank {} after {} us", run.deaths[0].rank, run.deaths[0].microseconds));
    expect_one_result(run, "0123 0123 0123 ");
  }
}

INSTANTIATE_TEST_SUITE_P(By, ElasticExchange,
                         ::testing::Values(Algorithm::ring, Algorithm::halving_doubling, Algorithm::tree,
                                           Algorithm::hierarchical),
                         [](const auto& tested) { return to_string(tested.param); });

TEST(ElasticExchangeOfMany, SeveralLossesInOneStep) {
  expect_one_result({.deaths = {{.rank = 1, .step = 2, .moment = Moment::after_a_bucket},
                                {.rank = 3, .step = 2, .moment = Moment::after_a_bucket}}},
                    "0123 0123 02 02 02 02 ");
}

TEST(ElasticExchangeOfMany, ASecondLossWhileTheOthersRecover) {
  std::mt19937 random(11);
  for (int i = 0; i < 4; ++i) {
    // Some time after the first one: before, during or after the recovery.
    Scenario run{.steps = 12};
    run.deaths = {{.rank = 2, .step = 1, .moment = Moment::before_the_step},
                  {.rank = 3,
                   .step = 1,
                   .moment = Moment::in_the_exchange,
                   .microseconds = 20 + static_cast<int>(random() % 6000)}};
    SCOPED_TRACE(fmt::format("after {} us", run.deaths[1].microseconds));
    expect_one_result(run, "0123 ");
  }
}

TEST(ElasticExchangeOfMany, DownToOne) {
  expect_one_result({.size = 3,
                     .deaths = {{.rank = 2, .step = 1, .moment = Moment::before_the_step},
                                {.rank = 1, .step = 3, .moment = Moment::before_the_step}}},
                    "012 01 01 0 0 0 ");
}

TEST(ElasticExchangeOfMany, AStoppedOneIsNotLost) {
  const Scenario run{.deaths = {{.rank = 1, .step = 2, .moment = Moment::stopped_for_a_moment}}};
  for (const Outcome& outcome : train(run)) {
    EXPECT_TRUE(outcome.is_success) << outcome.answer;
    EXPECT_EQ(outcome.answer.rfind("0123 0123 0123 0123 0123 0123 ", 0), 0U) << outcome.answer;
  }
}

TEST(ElasticExchangeOfMany, SixteenBitsOnTheWire) {
  expect_one_result({.algorithm = Algorithm::ring,
                     .wire = Wire::bf16,
                     .deaths = {{.rank = 1, .step = 2, .moment = Moment::after_a_bucket}}},
                    "0123 0123 023 023 023 023 ");
}

TEST(ElasticExchangeOfMany, WithoutWordFromTheLauncherTheErrorStays) {
  Scenario run{.size = 2, .deaths = {{.rank = 1, .step = 2, .moment = Moment::before_the_step}}, .is_told = false};
  const auto outcomes = train(run);
  EXPECT_FALSE(outcomes[0].is_success);
  EXPECT_NE(outcomes[0].answer.find("worker 1"), std::string::npos) << outcomes[0].answer;
}

}  // namespace
}  // namespace trireme::comm::testkit
