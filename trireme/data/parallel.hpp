// Independent parts of work on separate threads, for reading and writing data sets. OpenMP computes training steps.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>

namespace trireme::data {

// Calls work(0) to work(parts - 1), each once, on up to `threads` threads, roughly in order. The first error ends it
// and is thrown when all threads have ended; a stop request ends it after the parts in progress.
void for_each_part(std::int64_t parts, int threads, const std::stop_token& stop,
                   const std::function<void(std::int64_t part)>& work);

}  // namespace trireme::data
