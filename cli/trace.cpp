#include "cli/trace.hpp"

#include <fmt/format.h>

namespace trireme::cli {

std::unique_ptr<lab::JobTrace> start_trace(const std::string& path, train::Job& job, int workers, std::int64_t steps) {
  if (path.empty()) return nullptr;
  return std::make_unique<lab::JobTrace>(job.everybody(), workers, steps);
}

void finish_trace(std::unique_ptr<lab::JobTrace> trace, const std::string& path, std::FILE* text_stream) {
  if (trace == nullptr) return;
  const std::string line = trace->write(path);
  if (!line.empty()) fmt::print(text_stream, "{}\n", line);
}

}  // namespace trireme::cli
