// The part of --trace that `bench` and `train` have in common.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "trireme/lab/job_trace.hpp"
#include "trireme/train/job.hpp"

namespace trireme::cli {

// Collective over all members of the job; nothing where no trace is wanted.
std::unique_ptr<lab::JobTrace> start_trace(const std::string& path, train::Job& job, int workers, std::int64_t steps);
inline perf::Recorder* recorder_of(const std::unique_ptr<lab::JobTrace>& trace) {
  return trace == nullptr ? nullptr : &trace->recorder();
}
// Collective: writes it, if there is one, and says so.
void finish_trace(std::unique_ptr<lab::JobTrace> trace, const std::string& path, std::FILE* text_stream);

}  // namespace trireme::cli
