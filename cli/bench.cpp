// `trireme bench`: how fast this machine trains a network on synthetic images.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "cli/bench_options.hpp"
#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "trireme/base/error.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/lab/benchmark.hpp"
#include "trireme/lab/benchmark_output.hpp"
#include "trireme/lab/benchmark_record.hpp"
#include "trireme/lab/profile.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::cli {
namespace {

void print_profile(const lab::Benchmark& benchmark, std::FILE* stream) {
  const lab::BenchmarkSetup& setup = benchmark.setup();
  const Executable& executable = benchmark.executable();
  if (executable.profile().runs == 0) return;
  const double step_seconds = perf::summarize(lab::all_step_seconds(benchmark.result())).mean;
  const lab::StepProfile profile = lab::make_profile(executable.program(), executable.profile(), step_seconds,
                                                     setup.config.inter_threads, setup.threads.groups);
  perf::Peak peak = setup.peak;
  if (setup.threads.groups > 1) {
    std::fputs(fmt::format("\nOf the first of {} groups of cores; the others do the same on their images.",
                           setup.threads.groups)
                   .c_str(),
               stream);
    peak.flops_per_second /= setup.threads.groups;
  }
  std::fputs(lab::to_text(profile, peak, setup.config.profile_rows).c_str(), stream);
}

void run_and_show(lab::Benchmark& benchmark, std::FILE* text_stream, std::stop_token stop) {
  lab::BenchmarkText text(text_stream);
  if (cluster::shows_progress()) {
    lab::ProgressBar bar(text, stderr);
    benchmark.run(bar, stop);
  } else {
    benchmark.run(text, stop);
  }
  if (benchmark.setup().config.profile) print_profile(benchmark, text_stream);
  std::fflush(text_stream);
}

void say_tuning() {
  std::fputs(
      "timing the kernels of this network and splits of the batch: once for each shape, number of threads "
      "and CPU\n",
      stderr);
}

// A failure after the options were found good is part of the record: it is written before the error goes on to main().
void run_with_record(const lab::BenchmarkConfig& config, const std::string& path, std::FILE* text_stream,
                     std::stop_token stop) {
  report::RunRecord record = lab::start_record(config);
  std::optional<lab::Benchmark> benchmark;
  try {
    benchmark.emplace(config, say_tuning);
    run_and_show(*benchmark, text_stream, stop);
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    if (ours != nullptr && ours->kind() == ErrorKind::bad_input) throw;  // nothing was run
    record.error = error.what();
    if (benchmark) lab::fill_record(record, *benchmark);
    report::write_json(to_json(record), path);
    throw;
  }
  lab::fill_record(record, *benchmark);
  report::write_json(to_json(record), path);
}

int run_bench(const BenchArguments& arguments) {
  if (!arguments.refused.empty()) bad_input("{}", arguments.refused);
  const lab::BenchmarkConfig config = lab::resolve(arguments.options);
  if (!arguments.record.empty()) report::check_writable(arguments.record);
  const Interrupt interrupt;
  if (arguments.record.empty()) {
    lab::Benchmark benchmark(config, say_tuning);
    run_and_show(benchmark, stdout, interrupt.token());
  } else {
    // Text goes where it cannot mix with a record on stdout.
    run_with_record(config, arguments.record, arguments.record == "-" ? stderr : stdout, interrupt.token());
  }
  return interrupt.token().stop_requested() ? kInterruptedExitCode : 0;
}

}  // namespace

Command add_bench(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "bench", "Throughput of training a network (or of inference) on this machine, on synthetic images");
  auto arguments = std::make_shared<BenchArguments>();  // lives as long as the parser and the command refer to it
  add_bench_options(*app, *arguments);
  return {app, [arguments] { return run_bench(*arguments); }};
}

}  // namespace trireme::cli
