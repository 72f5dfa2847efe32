#include "cli/benchmark_output.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "trireme/base/text_table.hpp"
#include "trireme/base/units.hpp"
#include "trireme/config/tables.hpp"
#include "trireme/lab/bench/job_figures.hpp"
#include "trireme/perf/build_info.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::cli {
namespace {

std::string batch_size_text(const lab::BenchmarkSetup& setup) {
  const lab::BenchmarkConfig& config = setup.config;
  std::string text = fmt::format("{} global = {} per worker x {}", config.global_batch_size(), config.batch_size,
                                 workers_text(config.distribution.workers));
  if (config.batch_size_chosen && config.batch_size != setup.model.batch_size) {
    text += fmt::format("; chosen to be quick; the network's own is {}: --batch-size {}", setup.model.batch_size,
                        setup.model.batch_size);
  }
  return text;
}

std::string steps_text(const lab::BenchmarkConfig& config) {
  std::string text = fmt::format("{} warm-up, then {} timed", config.num_warmup_batches, *config.num_batches);
  if (*config.repeats > 1) text += fmt::format(" x {} repeats", *config.repeats);
  if (config.max_seconds) text += fmt::format(", for at most {:g} s (--max-seconds)", *config.max_seconds);
  return text;
}

std::string optimizer_text(const lab::BenchmarkConfig& config) {
  return fmt::format("{}, learning rate {}", describe(config.optimizer), to_string(config.schedule));
}

std::string split_text(const lab::BenchmarkSetup& setup) {
  const int groups = setup.threads.groups;
  const int threads = setup.threads.intra_threads;
  std::string text =
      groups == 1 ? "none: all threads work on the whole batch"
                  : fmt::format("{} groups of {} image{} on {} thread{} each", groups, setup.config.batch_size / groups,
                                setup.config.batch_size == groups ? "" : "s", threads, threads == 1 ? "" : "s");
  if (groups > 1 && setup.config.batch_norm_over == train::BatchNormOver::group)
    text += ", batch norm within each group";
  if (setup.split.trials.empty()) return text;
  std::vector<std::string> trials;
  for (const train::SplitTrial& trial : setup.split.trials) {
    trials.push_back(fmt::format("{} ({:.1f})", trial.groups, trial.images_per_second));
  }
  return fmt::format("{}; chosen from {} groups (images/sec when tried)", text, fmt::join(trials, ", "));
}

// What was considered, as speeds relative to data parallelism.
std::string parallel_text(const lab::BenchmarkSetup& setup) {
  const train::ParallelChoice& choice = setup.parallel;
  const double images = static_cast<double>(setup.config.global_batch_size());
  const train::ParallelPlan& chosen = choice.plans[choice.chosen];
  std::vector<std::string> considered;
  for (const train::ParallelPlan& plan : choice.plans) {
    considered.push_back(fmt::format(
        "{} {}", plan.text(),
        plan.problem.empty() ? fmt::format("{:.2f}", choice.plans[0].seconds / plan.seconds) : plan.problem));
  }
  std::set<int> nodes;
  for (const comm::Member& member : setup.members) nodes.insert(member.node);
  const comm::LinkCost& link = nodes.size() > 1 ? choice.links.across : choice.links.in_node;
  return fmt::format(
      "{}, predicted {:.1f} images/sec; speeds relative to data: {} ({}, links {} hosts {} and {:.2f} GB/s)",
      chosen.text(), images / chosen.seconds, fmt::join(considered, ", "),
      choice.is_timed ? "by timed operations" : "by operations' flops and bytes",
      nodes.size() > 1 ? "between" : "within", format_seconds(link.latency_seconds), link.bytes_per_second / 1e9);
}

std::string data_format_text(DataFormat format) {
  return format == DataFormat::automatic ? "auto: chosen by the backend for every edge"
                                         : std::string(to_string(format));
}

std::string memory_text(const MemorySummary& memory) {
  const std::string text = fmt::format("{} planned for activations and scratch, {} unplanned",
                                       format_bytes(memory.planned_bytes), format_bytes(memory.unplanned_bytes));
  if (memory.optimizer_bytes == 0) return text;
  return fmt::format("{}; {} of optimizer state", text, format_bytes(memory.optimizer_bytes));
}

std::string recomputation_text(const lab::BenchmarkSetup& setup) {
  const Recomputation& again = setup.recomputation;
  if (again.nodes == 0) return fmt::format("{}: nothing to save", to_string(setup.config.recompute));
  return fmt::format("{}: {} {} again, {:.1f} % more flops and {:.1f} % more bytes moved; {} instead of {}",
                     to_string(setup.config.recompute), again.nodes,
                     again.nodes == 1 ? "operation runs" : "operations run", 100 * again.extra_flops,
                     100 * again.extra_bytes, format_bytes(setup.memory.planned_bytes),
                     format_bytes(again.planned_bytes_without));
}

std::string variables_text(const lab::BenchmarkSetup& setup) {
  return fmt::format("{} trainable tensors, {} parameters, {} with running statistics", setup.counts.gradient_tensors,
                     format_count(setup.counts.parameters), format_bytes(setup.memory.variable_bytes));
}

std::string kernels_text(const lab::BenchmarkSetup& setup) {
  const lab::BenchmarkConfig& config = setup.config;
  if (config.autotune == Autotune::off) return "the backend's first choice (--autotune off)";
  const std::string how = fmt::format("fastest by timing (--autotune {}{})", to_string(config.autotune),
                                      config.options.exact ? ", --exact" : "");
  if (setup.kernels_timed == 0) return how + ", from earlier timings";
  const std::string why =
      setup.problems_renewed == 0
          ? ""
          : fmt::format("; timings of {} problem{} were over {} days old or from a busy machine",
                        setup.problems_renewed, setup.problems_renewed == 1 ? "" : "s", perf::kDaysTrusted);
  return fmt::format("{}: {} timed in {}{}", how, setup.kernels_timed, format_seconds(setup.tuning_seconds), why);
}

// As in --precision.
const char* precision_name(DataType type) {
  return type == DataType::bf16 ? "bf16" : type == DataType::f16 ? "fp16" : "fp32";
}

std::string peak_text(const perf::Peak& peak) {
  if (peak.threads == 0) {
    return fmt::format("{:.1f} TFLOP/s of {} {}, {:.2f} TB/s copied", peak.flops_per_second / 1e12,
                       precision_name(peak.type), peak.instruction_set, peak.bytes_per_second / 1e12);
  }
  return fmt::format("{:.1f} GFLOP/s of {} multiply-add ({}, {} thread{})", peak.flops_per_second / 1e9,
                     precision_name(peak.type), peak.instruction_set, peak.threads, peak.threads == 1 ? "" : "s");
}

std::string repeats_text(const lab::JobFigures& figures) {
  std::string text;
  std::size_t number = 0;
  for (const auto& seconds : figures.step_seconds) {
    if (seconds.empty()) continue;
    text += fmt::format("repeat {}: images/sec: {:.2f} global  {} steps\n", number + 1, figures.per_repeat[number],
                        seconds.size());
    ++number;
  }
  if (figures.per_repeat.empty()) return text;
  const perf::Summary summary = perf::summarize(figures.per_repeat);
  return text + fmt::format("median of {} repeats: {:.2f} images/sec, from {:.2f} to {:.2f}\n", number, summary.median,
                            summary.minimum, summary.maximum);
}

std::string early_end_text(const lab::BenchmarkSetup& setup, const lab::BenchmarkResult& result, std::size_t steps) {
  const char* reason = result.interrupted ? "interrupted" : result.out_of_time ? "time is up (--max-seconds)" : nullptr;
  if (reason == nullptr) return "";
  return fmt::format("{}: {} of {} warm-up and {} of {} timed steps were done\n", reason, result.warmup_steps,
                     setup.config.num_warmup_batches, steps, *setup.config.num_batches * *setup.config.repeats);
}

// No step of these instructions is faster than either time. Bytes are counted per instruction: data left in the cache
// for the next one counts again, so a step of small tensors can beat its floor.
std::string floors_text(const lab::BenchmarkSetup& setup, double step_seconds) {
  const double by_flops = setup.flops_per_step / setup.peak.flops_per_second;
  const double by_bytes = setup.bytes_per_step / setup.peak.bytes_per_second;
  return fmt::format("floors:      {} by operations, {} by bytes ({}); the step is {:.2f} times the larger\n",
                     format_seconds(by_flops), format_seconds(by_bytes), format_bytes(setup.bytes_per_step),
                     step_seconds / std::max(by_flops, by_bytes));
}

// For this worker; the table of workers has the others.
std::string input_text(const lab::BenchmarkSetup& setup, const lab::BenchmarkResult& result, double step_seconds) {
  if (!setup.config.data.is_real() || result.ranks.empty()) return "";
  const double input = result.ranks.front().input;
  std::string text = fmt::format("input wait:  {} per step{}, {:.1f} % of it\n", format_seconds(input),
                                 result.ranks.size() > 1 ? " on rank 0" : "", 100 * input / step_seconds);
  if (result.bad_records > 0) text += fmt::format("bad records: {} skipped\n", result.bad_records);
  const std::vector<double> overheads = result.input_cost.overheads();
  if (overheads.empty()) return text;
  const perf::Summary summary = perf::summarize(overheads);
  return text + fmt::format(
                    "I/O overhead: {:.2f} % (median of {} rounds, from {:.2f} to {:.2f}): {:.2f} images/sec with "
                    "the data set, {:.2f} with a batch in place\n",
                    summary.median, overheads.size(), summary.minimum, summary.maximum,
                    perf::summarize(result.input_cost.real).median, perf::summarize(result.input_cost.in_place).median);
}

}  // namespace

std::string introduction(const lab::BenchmarkConfig& config) {
  const std::int64_t steps = config.num_warmup_batches + *config.num_batches * *config.repeats;
  const int workers = config.distribution.workers;
  return fmt::format("Trireme {} measures {} of {} on {}{}, batch {}, for {}\n", perf::build_info().version,
                     config.options.forward_only ? "inference" : "training", config.options.model,
                     config.options.device, workers > 1 ? " with " + workers_text(workers) : "",
                     config.global_batch_size(),
                     config.max_seconds ? fmt::format("at most {:g} s", *config.max_seconds)
                                        : fmt::format("{} step{}", steps, steps == 1 ? "" : "s"));
}

std::string banner(const lab::BenchmarkSetup& setup) { return banner(setup, steps_text(setup.config)); }

std::string banner(const lab::BenchmarkSetup& setup, const std::string& steps) {
  const lab::BenchmarkConfig& config = setup.config;
  const Network& model = setup.model;
  TextTable table({{"", Align::left}, {"", Align::left}});
  table.add_row({"Model:", fmt::format("{} ({})", model.name, model.description)});
  if (config.data.is_real()) {
    table.add_row({"Dataset:", setup.dataset});
    table.add_row({"Input:", setup.preprocessing});
  } else {
    table.add_row({"Dataset:", fmt::format("synthetic: {}x{}x{} images, {} classes, one batch made once",
                                           model.channels, model.image_size, model.image_size, model.classes)});
  }
  table.add_row({"Mode:", config.options.forward_only ? "forward-only" : "training"});
  table.add_row({"Batch size:", batch_size_text(setup)});
  table.add_row({"Steps:", steps});
  if (setup.members.size() > 1) table.add_row({"Workers:", members_text(setup.members)});
  if (!setup.servers.empty()) table.add_row({"Servers:", servers_text(setup)});
  table.add_row({setup.members.size() > 1 ? "Devices of rank 0:" : "Devices:",
                 setup.device.empty() ? fmt::format("cpu: {}", setup.threads.describe()) : setup.device});
  table.add_row({"Batch split:", split_text(setup)});
  table.add_row({"Backend:", fmt::format("{}, {}", config.backend, to_string(config.precision))});
  table.add_row({"Kernels:", kernels_text(setup)});
  table.add_row({"Data format:", data_format_text(config.data_format)});
  if (!config.options.forward_only) table.add_row({"Optimizer:", optimizer_text(config)});
  table.add_row({"Variables:", variables_text(setup)});
  if (!setup.parallel.plans.empty()) table.add_row({"Parallel:", parallel_text(setup)});
  table.add_row({"Update mode:", update_text(setup)});
  if (!setup.transport.empty()) table.add_row({"Transport:", setup.transport});
  if (setup.network) table.add_row({"Network:", to_string(*setup.network, std::chrono::system_clock::now())});
  for (const std::string& problem : setup.network_problems) {
    table.add_row({"Network:", fmt::format("a measurement is not used: {}", problem)});
  }
  table.add_row({"Memory:", memory_text(setup.memory)});
  if (config.recompute != Recompute::none) table.add_row({"Recomputation:", recomputation_text(setup)});
  table.add_row({"Work:", fmt::format("{} per image",
                                      format_flops(setup.flops_per_step / static_cast<double>(config.batch_size)))});
  const std::vector<std::string> given = config::step_table().words(config.options, config.given);
  if (!given.empty()) table.add_row({"Given:", fmt::format("{}", fmt::join(given, " "))});
  table.add_row({"Seed:", fmt::format("{}", config.seed())});
  std::string text = table.text();
  for (const std::string& warning : setup.warnings) text += fmt::format("Warning: {}\n", warning);
  return text + fmt::format("Prepared in {}.\n", format_seconds(setup.prepare_seconds));
}

std::string step_line(const lab::StepEvent& event, std::int64_t batch_size) {
  const lab::Throughput speed = lab::throughput(event.step_seconds, batch_size);
  return fmt::format("{}\timages/sec: {:.1f} +/- {:.1f} (jitter = {:.1f})\t{:.3f}\n", event.step,
                     speed.images_per_second, speed.uncertainty, speed.jitter, event.loss);
}

std::string totals(const lab::BenchmarkSetup& setup, const lab::BenchmarkResult& result) {
  const lab::JobFigures figures = lab::job_figures(setup, result);
  const std::vector<double> seconds = lab::joined(figures.step_seconds);
  std::string text = early_end_text(setup, result, seconds.size());
  if (seconds.empty()) return text + "nothing was measured\n";
  const perf::Summary summary = perf::summarize(seconds);
  const double flops_per_second = setup.flops_per_step / summary.mean;
  const std::string rule(64, '-');
  text += rule + "\n";
  if (figures.step_seconds.size() > 1) text += repeats_text(figures);
  const int workers = setup.config.distribution.workers;
  text += fmt::format("total images/sec: {:.2f} (global, {}{})\n", figures.images_per_second, workers_text(workers),
                      workers == 1 ? "" : fmt::format("; {:.2f} per worker", figures.images_per_second / workers));
  text += rule + "\n";
  if (const train::ParallelChoice& choice = setup.parallel; !choice.plans.empty()) {
    const double predicted =
        static_cast<double>(setup.config.global_batch_size()) / choice.plans[choice.chosen].seconds;
    text += fmt::format("predicted:   {:.2f} images/sec by --parallel auto; measured: {:.2f} of it\n", predicted,
                        figures.images_per_second / predicted);
  }
  text += baseline_text(setup, result, figures);
  if (figures.workers) text += workers_table(figures, result.ranks);
  if (!result.servers.empty()) text += servers_table(setup, result.servers);
  if (result.replicas_agree > 0)
    text += fmt::format("replicas:    identical to the bit after {} steps\n", result.replicas_agree);
  text += fmt::format("step time:   median {}, 95th percentile {}, mean {} +/- {}, {} steps\n",
                      format_seconds(summary.median), format_seconds(summary.p95), format_seconds(summary.mean),
                      format_seconds(summary.stderr_mean), seconds.size());
  text += input_text(setup, result, summary.mean);
  if (result.loss_scale)
    text += fmt::format("loss scale:  {:g}, {} updates skipped\n", result.loss_scale->scale,
                        result.loss_scale->skipped_updates);
  text += fmt::format("compute:     {}/s{}, {:.1f} % of the peak: {}\n", format_flops(flops_per_second),
                      workers == 1 ? "" : " per worker", 100 * flops_per_second / setup.peak.flops_per_second,
                      peak_text(setup.peak));
  if (!setup.device.empty()) text += floors_text(setup, summary.median);
  const std::string on_gpu = setup.device.empty() ? "" : format_bytes(result.device_bytes) + " of the GPU's, ";
  return text + fmt::format("peak memory: {}{} resident\n", on_gpu, format_bytes(perf::peak_rss_bytes()));
}

double progress(const lab::BenchmarkConfig& config, double elapsed_seconds, std::int64_t steps_done) {
  const double steps = static_cast<double>(config.num_warmup_batches + *config.repeats * *config.num_batches);
  const double by_steps = static_cast<double>(steps_done) / steps;
  const double by_time = config.max_seconds ? elapsed_seconds / *config.max_seconds : 0;
  return std::clamp(std::max(by_steps, by_time), 0.0, 1.0);
}

}  // namespace trireme::cli
