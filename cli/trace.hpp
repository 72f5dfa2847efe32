// The part of --trace that `bench` and `train` share.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "trireme/base/error.hpp"
#include "trireme/lab/bench/job_trace.hpp"
#include "trireme/train/job.hpp"
#include "trireme/train/step_config.hpp"

namespace trireme::cli {

// Collective over all members of the job; null if no trace is wanted.
inline std::unique_ptr<lab::JobTrace> start_trace(const std::string& path, train::Job& job,
                                                  const train::StepConfig& config) {
  const int workers = config.distribution.workers;
  if (!path.empty() && config.distribution.is_elastic() && workers > 1) {
    bad_input("--elastic and --trace cannot be used together: a lost worker takes its part of the trace along");
  }
  return path.empty() ? nullptr : std::make_unique<lab::JobTrace>(job.everybody(), workers, config.options.trace_steps);
}
inline perf::Recorder* recorder_of(const std::unique_ptr<lab::JobTrace>& trace) {
  return trace == nullptr ? nullptr : &trace->recorder();
}
// Collective: writes the trace, if any, and reports it.
inline void finish_trace(std::unique_ptr<lab::JobTrace> trace, const std::string& path, std::FILE* text_stream) {
  if (trace == nullptr) return;
  const std::string line = trace->write(path);
  if (!line.empty()) fmt::print(text_stream, "{}\n", line);
}

}  // namespace trireme::cli
