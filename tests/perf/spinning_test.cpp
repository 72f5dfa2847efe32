#include "trireme/perf/spinning.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "trireme/perf/threads.hpp"

namespace trireme::perf {
namespace {

int threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

bool comes_true(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

class Spinning : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv("OMP_WAIT_POLICY");
    unsetenv("GOMP_SPINCOUNT");
  }
};

// libgomp's own rule: more of its threads than processors do not spin. So there have to be as many, while there is a
// reason, and none afterwards.
TEST_F(Spinning, IsLimitedWhileThreadsWaitForAProcessor) {
  const int processors = omp_get_num_procs();
  const int before = threads_of_this_process();
  auto limit = limit_spinning_under_load();
  ASSERT_NE(limit, nullptr);
  {
    std::atomic<bool> over = false;
    std::vector<std::jthread> busy;
    const int processor = usable_processors().front();
    for (int i = 0; i < 2; ++i) {
      busy.emplace_back([&] {
        EXPECT_TRUE(limit_thread({processor}));
        while (!over) {
        }
      });
    }
    EXPECT_TRUE(comes_true([&] { return threads_of_this_process() > before + 2 + processors; }));
    over = true;
  }
  limit.reset();
  EXPECT_TRUE(comes_true([&] { return threads_of_this_process() == before; }));
}

TEST_F(Spinning, IsWatchedOncePerProcess) {
  const auto one = limit_spinning_under_load();
  EXPECT_EQ(limit_spinning_under_load(), one);
}

TEST_F(Spinning, IsLeftToUsersWhoHaveChosen) {
  for (const char* variable : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) {
    setenv(variable, "active", 1);
    EXPECT_EQ(limit_spinning_under_load(), nullptr) << variable;
    unsetenv(variable);
  }
}

}  // namespace
}  // namespace trireme::perf
