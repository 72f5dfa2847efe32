// Work in independent parts on some threads of its own. For reading and writing data sets, not for computing: the cores
// of a training step belong to OpenMP's threads.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>

namespace trireme::data {

// Calls work(0) to work(parts - 1), each once, on up to so many threads, in about this order. The first error ends it
// and is thrown when all threads have ended; a stop that is asked for ends it after the parts that are under way.
void for_each_part(std::int64_t parts, int threads, const std::stop_token& stop,
                   const std::function<void(std::int64_t part)>& work);

}  // namespace trireme::data
