#include "trireme/data/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace trireme::data {

void for_each_part(std::int64_t parts, int threads, const std::stop_token& stop,
                   const std::function<void(std::int64_t part)>& work) {
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::exception_ptr error;
  const auto take_parts = [&] {
    while (!failed && !stop.stop_requested()) {
      const std::int64_t part = next++;
      if (part >= parts) return;
      try {
        work(part);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        failed = true;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::int64_t i = 1; i < std::min<std::int64_t>(threads, parts); ++i) helpers.emplace_back(take_parts);
    take_parts();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace trireme::data
