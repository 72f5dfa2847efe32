// `trireme bench`: measures how fast this machine trains a network on synthetic images or a data set.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "cli/bench_options.hpp"
#include "cli/benchmark_output.hpp"
#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "cli/config_file.hpp"
#include "cli/interrupt.hpp"
#include "cli/option_catalog.hpp"
#include "cli/trace.hpp"
#include "trireme/base/error.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/task_runner.hpp"
#include "trireme/lab/bench/benchmark.hpp"
#include "trireme/lab/bench/job_figures.hpp"
#include "trireme/lab/bench/profile.hpp"
#include "trireme/lab/study/duration.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/report/terminal.hpp"
#include "trireme/report/trace_writer.hpp"
#include "trireme/train/job.hpp"

namespace trireme::cli {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr int kBarWidth = 30;

// The lines known from tf_cnn_benchmarks, with units. Step lines appear at step 1 and every display_every.
class BenchmarkText : public lab::BenchmarkObserver {
 public:
  explicit BenchmarkText(std::FILE* stream) : stream_(stream) {}
  void on_start(const lab::BenchmarkSetup& setup) override {
    batch_size_ = setup.config.global_batch_size();
    display_every_ = setup.config.display_every;
    repeats_ = *setup.config.repeats;
    const int workers = setup.config.distribution.workers;
    const std::string counts = workers == 1                                 ? "per worker = global: 1 worker"
                               : setup.config.distribution.is_synchronous() ? fmt::format("global: {} workers", workers)
                                                                            : fmt::format("{} x rank 0's own", workers);
    print(banner(setup) + fmt::format("\nStep\tImg/sec ({})\ttotal_loss\n", counts));
  }
  void on_step(const lab::StepEvent& event) override {
    if (!lab::is_displayed(event.step, display_every_)) return;
    const std::string heading =
        repeats_ > 1 && event.step == 1 ? fmt::format("repeat {} of {}\n", event.repeat + 1, repeats_) : "";
    print(heading + step_line(event, batch_size_));
  }
  void on_end(const lab::BenchmarkSetup& setup, const lab::BenchmarkResult& result) override {
    print(totals(setup, result));
  }

 private:
  void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stream_);
    std::fflush(stream_);  // show lines at once, also through a pipe
  }

  std::FILE* stream_;
  std::int64_t batch_size_ = 0, display_every_ = 1, repeats_ = 1;
};

// Draws a bar with the time left on a terminal, around another observer's output.
class ProgressBar : public lab::BenchmarkObserver {
 public:
  ProgressBar(lab::BenchmarkObserver& inner, std::FILE* terminal) : inner_(inner), line_(terminal) {}
  void on_start(const lab::BenchmarkSetup& setup) override {
    config_ = setup.config;
    inner_.on_start(setup);
  }
  void on_warmup_step(const lab::StepEvent& event) override {
    warmup_done_ = event.step;
    inner_.on_warmup_step(event);
    draw(event, "warm-up", event.step);
  }
  void on_step(const lab::StepEvent& event) override {
    if (lab::is_displayed(event.step, config_.display_every)) line_.erase();
    inner_.on_step(event);
    draw(event, "timed", warmup_done_ + event.repeat * *config_.num_batches + event.step);
  }
  void on_end(const lab::BenchmarkSetup& setup, const lab::BenchmarkResult& result) override {
    line_.erase();
    inner_.on_end(setup, result);
  }

 private:
  void draw(const lab::StepEvent& event, const char* phase, std::int64_t steps_done) {
    if (line_.is_drawn() && event.elapsed_seconds - drawn_at_ < kRedrawSeconds) return;
    const double done = progress(config_, event.elapsed_seconds, steps_done);
    const double left = done > 0 ? event.elapsed_seconds * (1 - done) / done : 0;
    const int filled = static_cast<int>(std::lround(done * kBarWidth));
    line_.draw(fmt::format("[{}{}] {:3.0f} %  {} {}/{}  {}", std::string(filled, '#'),
                           std::string(kBarWidth - filled, '.'), 100 * done, phase, event.step, event.steps,
                           lab::time_left_text(left)));
    drawn_at_ = event.elapsed_seconds;
  }

  lab::BenchmarkObserver& inner_;
  report::TerminalLine line_;
  lab::BenchmarkConfig config_;
  std::int64_t warmup_done_ = 0;
  double drawn_at_ = -1;  // seconds into the run; below 0: never
};

void print_profile(const lab::Benchmark& benchmark, std::FILE* stream) {
  const lab::BenchmarkSetup& setup = benchmark.setup();
  const Executable& executable = benchmark.executable();
  if (executable.profile().runs == 0) return;
  const double step_seconds = perf::summarize(lab::joined(benchmark.result().step_seconds)).mean;
  const lab::StepProfile profile = lab::make_profile(executable.program(), executable.profile(), step_seconds,
                                                     setup.config.inter_threads, setup.threads.groups);
  perf::Peak peak = setup.peak;
  if (setup.threads.groups > 1) {
    std::fputs(
        fmt::format("\nShown for the first of {} groups of cores; the others do the same work on their own images.",
                    setup.threads.groups)
            .c_str(),
        stream);
    peak.flops_per_second /= setup.threads.groups;
  }
  std::fputs(lab::to_text(profile, peak, setup.config.profile_rows).c_str(), stream);
}

// Only rank 0 prints.
void run_and_show(lab::Benchmark& benchmark, std::FILE* text_stream, std::stop_token stop) {
  BenchmarkText text(text_stream);
  if (cluster::shows_progress()) {
    ProgressBar bar(text, stderr);
    benchmark.run(bar, stop);
  } else {
    benchmark.run(text, stop);
  }
  if (benchmark.setup().config.profile) print_profile(benchmark, text_stream);
  std::fflush(text_stream);
}

void say_tuning() {
  std::fputs("timing kernels and batch splits of this network, once for each shape, number of threads and CPU\n",
             stderr);
}

struct Outcome {
  bool interrupted = false;  // on any worker
  double images_per_second = 0;
};

// If the run fails after the options were checked, writes the record before passing the error on to main().
Outcome run_first(const lab::BenchmarkConfig& config, const train::ProcessGroup& group, perf::Recorder* recorder,
                  const std::string& record_path, std::stop_token stop) {
  // Keep text apart from a record on stdout.
  std::FILE* text_stream = record_path == "-" ? stderr : stdout;
  record::RunRecord record = lab::start_record(config);
  std::optional<lab::Benchmark> benchmark;
  const auto write_record = [&] {
    if (record_path.empty()) return;
    if (benchmark) lab::fill_record(record, *benchmark);
    cluster::write_record(to_json(record), record_path);
  };
  // Before what takes a while, and after what may be refused.
  auto introduce = [&, is_shown = false]() mutable {
    if (std::exchange(is_shown, true)) return;
    std::fputs(introduction(config).c_str(), text_stream);
    std::fflush(text_stream);
  };
  const auto before_tuning = [&] {
    introduce();
    say_tuning();
  };
  try {
    benchmark.emplace(config, group, before_tuning, recorder);
    introduce();
    run_and_show(*benchmark, text_stream, stop);
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    if (ours != nullptr && ours->kind() == ErrorKind::bad_input) throw;  // nothing was run
    record.error = error.what();
    try {
      write_record();
    } catch (const std::exception& second) {  // report the first error
      log_line(second.what());
    }
    throw;
  }
  write_record();
  const lab::BenchmarkResult& result = benchmark->result();
  return {result.interrupted, lab::job_figures(benchmark->setup(), result).images_per_second};
}

Outcome run_other(const lab::BenchmarkConfig& config, const train::ProcessGroup& group, perf::Recorder* recorder,
                  std::stop_token stop) {
  lab::Benchmark benchmark(config, group, {}, recorder);
  lab::BenchmarkObserver silent;
  benchmark.run(silent, stop);
  return {.interrupted = benchmark.result().interrupted};
}

// "run.json" becomes "run-cuda.json".
std::string record_of(const std::string& path, const std::string& device) {
  const std::filesystem::path whole(path);
  std::string name = whole.stem().string() + "-" + device + whole.extension().string();
  std::ranges::replace(name, ':', '-');
  return path.empty() ? path : (whole.parent_path() / name).string();
}

// Benchmarks each device of a list in turn and compares them.
int compare_devices(const BenchArguments& arguments, const comm::JobSize& size, const train::ProcessGroup& group,
                    std::stop_token stop) {
  if (size.workers > 1 || size.servers > 0) {
    bad_input("--device {}: only a single worker can compare devices; run them one at a time",
              arguments.options.device);
  }
  if (!arguments.files.trace.empty())
    bad_input("--trace {}: only one device can be traced at a time; give one", arguments.files.trace);
  if (arguments.files.record == "-") bad_input("--record -: each device gets its own record; give a file name");
  const std::vector<std::string> devices = split_list(arguments.options.device);
  std::vector<lab::BenchmarkConfig> configs;
  for (const std::string& device : devices) {
    lab::BenchmarkOptions options = arguments.options;
    options.device = device;
    configs.push_back(lab::resolve(options, size));
  }
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    fmt::print("\n");
    outcomes.push_back(run_first(configs[i], group, nullptr, record_of(arguments.files.record, devices[i]), stop));
    if (outcomes.back().interrupted) return kInterruptedExitCode;
  }
  fmt::print("\n");
  for (std::size_t i = 0; i < devices.size(); ++i) {
    fmt::print("{:<8} {:10.2f} images/sec, {:.2f} times {}\n", devices[i], outcomes[i].images_per_second,
               outcomes[i].images_per_second / outcomes[0].images_per_second, devices[0]);
  }
  return 0;
}

int run_worker(const BenchArguments& arguments, const lab::BenchmarkConfig& config, const train::ProcessGroup& group,
               perf::Recorder* recorder, std::stop_token stop) {
  const Outcome outcome = group.workers.rank() == 0 ? run_first(config, group, recorder, arguments.files.record, stop)
                                                    : run_other(config, group, recorder, stop);
  return outcome.interrupted ? kInterruptedExitCode : 0;
}

int run_bench(const BenchArguments& arguments) {
  if (!arguments.refused.empty()) bad_input("{}", arguments.refused);
  const auto cluster = resolve_cluster(arguments.cluster);
  const int rank = cluster ? cluster->rank() : comm::launch_place().rank;
  if (rank == 0) cluster::check_record_path(arguments.files.record);
  if (rank == 0 && !arguments.files.trace.empty()) report::check_trace_path(arguments.files.trace);
  const comm::JobSize size = cluster ? cluster->spec.job_size() : comm::JobSize{.workers = comm::launch_place().size};
  Interrupt interrupt;
  if (split_list(arguments.options.device).size() > 1) {
    train::Job job(cluster, log_line);
    const int code = compare_devices(arguments, size, job.group(), interrupt.listen());
    job.leave();
    return code;
  }
  const lab::BenchmarkConfig config = lab::resolve(arguments.options, size);
  train::Job job(cluster, log_line);
  auto trace = start_trace(arguments.files.trace, job, config);
  perf::Recorder* const recorder = recorder_of(trace);
  int code = 0;
  if (job.is_server()) {
    job.serve(config.intra_threads, recorder);
  } else {
    code = run_worker(arguments, config, job.group(config.distribution.is_elastic()), recorder, interrupt.listen());
  }
  finish_trace(std::move(trace), arguments.files.trace, arguments.files.record == "-" ? stderr : stdout);
  job.leave();
  return code;
}

// Checks what is known before the processes exist.
LaunchNeeds launch_needs(const BenchArguments& arguments, const comm::JobSize& size) {
  if (!arguments.refused.empty()) bad_input("{}", arguments.refused);
  const train::DistributionConfig distribution = lab::check_before_launch(arguments.options, size);
  const bool is_one_device = split_list(arguments.options.device).size() == 1;  // each device gets its own record
  return training_needs(arguments.cluster, distribution, is_one_device ? arguments.files.record : "");
}

}  // namespace

Command add_bench(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "bench", "Measure training or inference throughput on this machine, with synthetic images or a data set");
  auto arguments = std::make_shared<BenchArguments>();  // owned by the callbacks of parser and command
  add_config_option(*app);
  add_bench_options(*app, *arguments);
  const auto run = [app, arguments] {
    for (const CLI::Option* option : app->get_options()) {
      if (is_for_users(*option) && option->count() > 0)
        arguments->options.given.push_back(option->get_lnames().front());
    }
    return run_bench(*arguments);
  };
  return {app, run, [arguments](const comm::JobSize& size) { return launch_needs(*arguments, size); },
          [arguments](const comm::JobSize& size) {
            if (split_list(arguments->options.device).size() == 1) lab::resolve(arguments->options, size);
          }};
}

}  // namespace trireme::cli
