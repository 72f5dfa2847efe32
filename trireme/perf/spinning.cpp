#include "trireme/perf/spinning.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace trireme::perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr double kBusy = 0.05;  // seconds that threads wait per second; a quiet machine has less than a fifth of this
constexpr int kQuietIntervals = 20;  // before threads may spin again

// Before any thread is bound, as OpenMP counts them.
const int kProcessors = omp_get_num_procs();

// How long the threads of this process have been ready to run without a processor. Allocates nothing after the
// constructor, as steps of training do not.
class ReadyTime {
 public:
  ReadyTime() : tasks_(opendir("/proc/self/task"), closedir) {}

  std::optional<std::chrono::nanoseconds> read() {
    if (!tasks_) return std::nullopt;
    std::chrono::nanoseconds sum{0};
    bool known = false;
    rewinddir(tasks_.get());
    while (const dirent* task = readdir(tasks_.get())) {
      const auto waited = of(task->d_name);
      known = known || waited.has_value();
      sum += waited.value_or(std::chrono::nanoseconds(0));
    }
    return known ? std::optional(sum) : std::nullopt;
  }

 private:
  std::optional<std::chrono::nanoseconds> of(const char* task) const {
    std::array<char, 300> text{};
    std::snprintf(text.data(), text.size(), "%s/schedstat", task);
    const int file = openat(dirfd(tasks_.get()), text.data(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::nullopt;  // "." and "..", or the thread has ended
    const ssize_t size = ::read(file, text.data(), text.size() - 1);
    close(file);
    if (size <= 0) return std::nullopt;
    text[static_cast<std::size_t>(size)] = '\0';
    char* end = text.data();
    std::strtoull(end, &end, 10);  // time on a processor
    return std::chrono::nanoseconds(std::strtoull(end, &end, 10));
  }

  std::unique_ptr<DIR, int (*)(DIR*)> tasks_;
};

// If there are more threads of OpenMP than processors, libgomp (as documented for GOMP_SPINCOUNT) hardly spins. These
// exist for that and sleep.
class SleepingTeam {
 public:
  SleepingTeam()
      : thread_([this] {
#pragma omp parallel num_threads(kProcessors + 1)
          over_.wait();
        }) {
  }
  ~SleepingTeam() { over_.count_down(); }
  SleepingTeam(const SleepingTeam&) = delete;
  SleepingTeam& operator=(const SleepingTeam&) = delete;

 private:
  std::latch over_{1};
  std::jthread thread_;  // its team ends with it
};

class SpinLimit {
 public:
  SpinLimit() : before_(ready_.read()), thread_([this](std::stop_token stop) { watch(std::move(stop)); }) {}

 private:
  void watch(std::stop_token stop) {
    std::optional<SleepingTeam> team;
    int quiet = 0;
    auto last = Clock::now();
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, stop, kInterval, [&] { return stop.stop_requested(); })) {
      const auto now = Clock::now();
      const auto ready = ready_.read();
      if (!ready || !before_) return;
      const std::chrono::duration<double> waited = *ready - *before_;  // below 0 if a thread has ended
      const bool is_busy = waited.count() > kBusy * std::chrono::duration<double>(now - last).count();
      quiet = is_busy ? 0 : std::min(quiet + 1, kQuietIntervals);
      if (is_busy && !team) team.emplace();
      if (quiet == kQuietIntervals) team.reset();
      before_ = ready;
      last = now;
    }
  }

  ReadyTime ready_;
  std::optional<std::chrono::nanoseconds> before_;
  std::jthread thread_;
};

}  // namespace

std::shared_ptr<void> limit_spinning_under_load() {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return nullptr;
  static std::mutex mutex;
  static std::weak_ptr<SpinLimit> shared;
  const std::scoped_lock lock(mutex);
  auto limit = shared.lock();
  if (!limit) shared = limit = std::make_shared<SpinLimit>();
  return limit;
}

}  // namespace trireme::perf
