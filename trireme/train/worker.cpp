#include "trireme/train/worker.hpp"

#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <numeric>
#include <utility>

#include "trireme/backend/registry.hpp"
#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/perf/core_division.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/runtime/stage_line.hpp"
#include "trireme/train/memory_check.hpp"
#include "trireme/train/same_options.hpp"

namespace trireme::train {
namespace {

constexpr auto kTuningTimeout = std::chrono::hours(1);

bool has_batch_norm(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.as<op::BatchNorm>() != nullptr; });
}

cpu_set_t affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) {
    fail(ErrorKind::failed, "the system does not report which processors this process may use");
  }
  return set;
}

// Collective. If workers of a machine may all run on the same processors, each pins itself to its own share. Returns a
// warning if there are more workers than cores and they must share.
std::string share_processors(comm::Communicator& workers) {
  workers.set_context("dividing the processors");
  const cpu_set_t mine = affinity();
  const std::vector<cpu_set_t> all = comm::all_gather_value(workers, mine);
  int before = 0, sharing = 0;  // workers here with the same processors: of lower rank, and all
  for (int rank = 0; rank < workers.size(); ++rank) {
    if (workers.members()[rank].node != workers.self().node) continue;
    if (!CPU_EQUAL(&all[rank], &mine)) continue;
    ++sharing;
    if (rank < workers.rank()) ++before;
  }
  const bool are_threads = workers.protocol() == "local";  // as in a replay
  if (sharing == 1 || are_threads) return "";
  const perf::CoreDivision division = perf::divide_this_machine({.workers = sharing, .oversubscribe = true});
  if (division.shared) {
    return fmt::format("{} workers on {} share {} processors: they slow each other down", sharing, workers.self().host,
                       CPU_COUNT(&mine));
  }
  // All threads: planning uses what the process may run on, and MPI has already started some.
  if (!perf::limit_process(division.workers[before])) {
    return "the system refuses to bind this worker to its own processors";
  }
  return "";
}

}  // namespace

TuningOptions tuning_options(const StepConfig& config, const perf::Machine& machine, std::function<void()> on_first) {
  TuningOptions options;
  options.autotune = config.autotune;
  options.exact = config.options.exact;
  options.cpu = machine.cpu;
  const double load = machine.load / std::max(1, machine.cores);
  options.cache =
      std::make_shared<TuneCache>(config.autotune == Autotune::off ? "" : config.tune_cache, TuneCache::today(load));
  options.on_first = std::move(on_first);
  return options;
}

std::string keep_timings(TuneCache& cache) {
  try {
    cache.save();
  } catch (const Error& error) {  // only costs a second or two at the next start
    return fmt::format("{}; kernels will be timed again next time (--tune-cache chooses another file)", error.what());
  }
  return "";
}

void choose_gpu(StepConfig& config, const comm::Communicator& workers) {
  const int gpus = config.options.device == "cuda" ? gpu_count() : 0;
  if (gpus < 2 || workers.size() == 1) return;
  int local_rank = 0;
  for (int rank = 0; rank < workers.rank(); ++rank) {
    if (workers.members()[rank].node == workers.self().node) ++local_rank;
  }
  config.backend = fmt::format("cuda:{}", local_rank % gpus);
}

void share_cores(StepConfig& config, comm::Communicator& workers, std::vector<std::string>& warnings) {
  if (workers.size() == 1) return;
  const std::string place = share_processors(workers);
  if (place.empty()) return;
  warnings.push_back(place);
  config.options.bind = false;
  if (config.intra_threads == 0) config.intra_threads = 1;
}

Worker::Worker(StepConfig& config, const ProcessGroup& group, Options options)
    : config_(config),
      workers_(&group.workers),
      launched_(&group.workers),
      with_servers_(group.with_servers),
      teams_(group.teams),
      options_(std::move(options)),
      samples_(options_.samples) {
  team_.ranks.resize(workers_->size());
  std::iota(team_.ranks.begin(), team_.ranks.end(), 0);
  if (workers_->size() != config.distribution.workers) {
    bad_input("a job of {} workers was given {} ranks", config.distribution.workers, workers_->size());
  }
  if (workers_->size() > 1) {
    workers_->set_timeout(std::chrono::duration<double>(config.distribution.comm_timeout));
    check_same_options(*workers_, to_json(config));
  }
  choose_gpu(config_, *workers_);
  // The others wait, so the first worker sees only other programs.
  const perf::Machine machine = workers_->rank() == 0 ? perf::read_machine() : perf::read_machine(0);
  setup_.warnings = machine.warnings;
  share_cores(config_, *workers_, setup_.warnings);
  const std::vector<int> processors = perf::usable_processors();
  setup_.threads = perf::plan_threads(config_.intra_threads, config_.inter_threads, config_.options.bind);
  config_.intra_threads = setup_.threads.intra_threads;
  config_.inter_threads = setup_.threads.inter_threads;
  tuning_ = tuning_options(config, machine, options_.on_tuning);
  open_data();
  if (config_.distribution.pipeline.is_automatic) choose_parallel();
  check_memory();
  // Before the step starts threads: a refused processor shows here.
  if (!config_.on_gpu()) measure_peak();
  const auto start = SteadyClock::now();
  divide_cores();
  prepare();
  setup_.prepare_seconds = seconds_since(start);
  if (config_.on_gpu()) measure_gpu_peak();
  if (options_.recorder != nullptr) name_spans(*options_.recorder);
  if (input_ && step_->needs_batches()) {
    input_->start(config_,
                  {.processors = config_.options.bind ? processors : std::vector<int>(),
                   .recorder = options_.recorder,
                   .needs_images = step_->needs_images()},
                  samples_);
  }
}

void Worker::name_spans(perf::Recorder& recorder) {
  trace_.track = &recorder.track(perf::Recorder::kMainTrack);
  trace_.wait_for_batch = recorder.label({.name = "wait for images", .kind = perf::SpanKind::input});
  trace_.place_batch = recorder.label({.name = "put images in place", .kind = perf::SpanKind::input});
  if (has_bubbles()) {
    trace_.stage = &StageLine::track(recorder, step_->executable().program().stage);
    trace_.bubble = recorder.label(StageLine::bubble("the end of the other stages' steps"));
  }
  step_->set_recorder(recorder);
}

const data::Batch& Worker::next_batch() {
  const perf::ScopedSpan span(trace_.track, trace_.wait_for_batch);
  return input_->next();
}

Worker::~Worker() {
  link_.reset();
  if (step_) step_->split().forget_exchange();
}

void Worker::choose_parallel() {
  const std::vector<HostMemory> hosts = host_memories(*workers_, memory_limit());
  setup_.parallel =
      train::choose_parallel({.config = config_,
                              .threads = setup_.threads,
                              .tuning = tuning_,
                              .hosts = hosts,
                              .memory = memory_use(),
                              .compile_in_turn = [this](const auto& compile) { compile_in_turn(compile); }},
                             *workers_);
  const ParallelPlan& chosen = setup_.parallel.plans[setup_.parallel.chosen];
  config_.distribution.pipeline = chosen.pipeline;
  config_.recompute = chosen.recompute;
  if (!setup_.parallel.warning.empty()) setup_.warnings.push_back(setup_.parallel.warning);
}

std::optional<double> Worker::memory_limit() const {
  constexpr double kGigabyte = 1e9;
  const std::optional<double>& limit = config_.options.memory_limit;
  return limit ? std::optional(*limit * kGigabyte) : std::nullopt;
}

void Worker::open_data() {
  if (!config_.data.is_real()) return;
  config_.data.set_threads(config_.on_gpu());
  input_ = std::make_unique<DataInput>(config_, *workers_);
  if (options_.on_data) options_.on_data(*input_);
  input_->check_suits(config_, options_.samples.used() > 0);
  config_.num_classes = input_->classes();
  config_.data.preprocessing = input_->preprocessing();
  setup_.dataset = input_->describe();
  setup_.preprocessing = input_->describe_preprocessing();
  if (const std::string others = data::other_files_text(input_->info()); !others.empty()) {
    setup_.warnings.push_back(fmt::format("--data-dir {}: there {}", config_.data.dir, others));
  }
  set_epoch(config_, input_->samples());
}

MemoryUse Worker::memory_use() const {
  MemoryUse use = options_.memory;
  use.step = config_;
  for (StepConfig& program : use.beside) program.num_classes = config_.num_classes;
  return use;
}

void Worker::check_memory() {
  if (config_.on_gpu()) return;
  for (std::string& warning : train::check_memory(memory_use(), host_memories(*workers_, memory_limit())))
    setup_.warnings.push_back(std::move(warning));
}

void Worker::divide_cores() {
  StepConfig& config = config_;
  const int threads = config.intra_threads;
  if (config.batch_split == 0) {
    const bool possible = config.inter_threads == 1 && make_backend(config.backend, {})->splits_batches();
    if (possible) setup_.split = choose_split(config, threads, tuning_, setup_.peak);
    config.batch_split = setup_.split.groups;
  }
  if (threads % config.batch_split != 0) {
    bad_input("--batch-split {}: {} threads cannot be divided evenly over {} groups of cores; try {}",
              config.batch_split, threads, config.batch_split,
              fmt::join(possible_splits(threads, config.batch_size), ", "));
  }
  setup_.split.groups = config.batch_split;
  setup_.threads =
      perf::plan_threads(threads / config.batch_split, config.inter_threads, config.options.bind, config.batch_split);
}

void Worker::measure_peak() {
  if (config_.on_gpu()) return measure_gpu_peak();
  // One team on the processors of all inter threads, from a separate thread: this thread's team stays unchanged.
  perf::ThreadPlan all = setup_.threads;
  all.intra_threads = all.threads();
  all.inter_threads = all.groups = 1;
  const DataType type = config_.precision == Precision::bf16 ? DataType::bf16 : DataType::f32;
  const auto measure = [&all, type] {
    perf::apply(all);
    return perf::measure_fma_peak(all.intra_threads, type);
  };
  const perf::Peak peak = std::async(std::launch::async, measure).get();
  // Other programs can only make it look smaller.
  if (peak.flops_per_second > setup_.peak.flops_per_second) setup_.peak = peak;
}

void Worker::measure_gpu_peak() {
  if (setup_.peak.flops_per_second > 0) return;  // it hardly changes, and takes memory
  const Precision precision = config_.precision;
  const ComputeDevice::Peak peak = backend_->device().measure_peak(precision);
  setup_.device = backend_->device().name();
  setup_.device_facts = backend_->device().facts();
  const DataType narrow = precision == Precision::fp16 ? DataType::f16 : DataType::bf16;
  setup_.peak = {.flops_per_second = peak.flops_per_second,
                 .type = precision == Precision::bf16 || precision == Precision::fp16 ? narrow : DataType::f32,
                 .instruction_set = precision == Precision::tf32 ? "matrix products in tf32" : "matrix products",
                 .threads = 0,
                 .bytes_per_second = peak.bytes_per_second};
}

void Worker::prepare() {
  setup_.rss_before_bytes = perf::rss_bytes();
  if (workers_->size() == 1) {
    build();
  } else {
    compile_by_timings([this] { time_kernels(); }, [this] { build(); });
  }
  describe_workers();
}

// Concurrent timings would disturb each other, and workers must choose alike: the first one times kernels and sends the
// timings to the others. All compile, however long it takes, before the usual timeout applies again.
void Worker::compile_by_timings(const std::function<void()>& time, const std::function<void()>& compile) {
  workers_->set_timeout(kTuningTimeout);
  workers_->set_context("waiting for rank 0 to time kernels");
  if (workers_->rank() == 0) time();
  const std::string timings = comm::broadcast_text(*workers_, tuning_.cache->text());
  if (workers_->rank() > 0) tuning_.cache->merge(timings);
  compile();
  comm::barrier(*workers_);
  workers_->set_timeout(std::chrono::duration<double>(config_.distribution.comm_timeout));
}

// Compiles the step as a single worker would, to obtain the timings. For the stages of a pipeline, which all compile
// the whole network, without memory for it.
void Worker::time_kernels() {
  if (config_.autotune == Autotune::off) return;
  if (config_.distribution.pipeline.is_used()) {
    Graph graph;
    const StepGraph step = build_step(graph, config_);
    const std::shared_ptr<Backend> backend = make_backend(config_.backend, tuning_);
    CompileOptions options = compile_options(config_);
    options.stages = stage_options(config_.distribution.pipeline, graph, step.fetches, *backend, workers_->rank());
    perf::apply(setup_.threads, 0);
    VariableLayouts layouts;
    compile(graph, step.fetches, *backend, options, layouts);
    return;
  }
  StepConfig alone = config_;
  alone.distribution = {};
  const std::shared_ptr<Backend> backend = make_backend(alone.backend, tuning_);
  const PreparedStep step(alone, setup_.threads, *backend);
}

double Worker::take_batch() {
  if (!step_->needs_batches()) return 0;
  const auto start = SteadyClock::now();
  for (int run = 0; run < step_->micro_batches(); ++run) {
    const data::Batch& batch = next_batch();
    const perf::ScopedSpan span(trace_.track, trace_.place_batch);
    step_->set_batch(batch.images, batch.labels, run);
  }
  return seconds_since(start);
}

bool Worker::has_bubbles() const { return pipeline_ != nullptr && backend_->device().is_host(); }

// In a pipeline the last stage knows the loss.
double Worker::share_outcome(double loss) {
  if (pipeline_ == nullptr) return loss;
  const auto start = SteadyClock::now();
  const perf::ScopedSpan span(trace_.stage, trace_.bubble);
  const bool is_known = step_->knows_loss();
  outcome_ =
      pipeline_->share({.loss = is_known ? loss : 0, .accuracy = step_->accuracy().value_or(0), .is_known = is_known});
  if (has_bubbles()) bubble_seconds_ = step_->executable().exchange_times().stages + seconds_since(start);
  return outcome_.loss;
}

std::optional<double> Worker::accuracy() const {
  if (pipeline_ == nullptr) return step_->accuracy();
  return config_.options.train_accuracy ? std::optional(outcome_.accuracy) : std::nullopt;
}

void Worker::set_run(int run) {
  const bool has_micro_batches = config_.distribution.pipeline.is_used();
  const auto workers = static_cast<int>(team_.ranks.size());
  step_->set_first_sample(has_micro_batches ? run * config_.global_batch_size()
                                            : (run * workers + place_in_team()) * config_.batch_size);
}

// Runs alongside a step on a device. A failure matters only to the step that needs the batch, which may never come.
void Worker::take_next_batch() {
  if (!std::exchange(wants_next_batch_, false)) return;
  batch_is_there_ = true;
  beside_seconds_ = 0;
  try {
    beside_seconds_ = take_batch();
  } catch (const std::exception&) {
    batch_problem_ = std::current_exception();
  }
}

double Worker::run_step(double learning_rate, bool on_next_batch) {
  const auto start = SteadyClock::now();
  wants_next_batch_ = false;
  input_seconds_ = 0;
  if (elastic_ != nullptr) teams_->begin_step(updates_);
  const bool takes_batch = input_ != nullptr && on_next_batch;
  const double loss = takes_batch ? run_on_next_batch(learning_rate) : step_->run(learning_rate);
  step_seconds_ = seconds_since(start) - input_seconds_;
  update_loss_ += loss;
  return share_outcome(loss);
}

double Worker::run_on_next_batch(double learning_rate) {
  if (batch_problem_) std::rethrow_exception(batch_problem_);
  input_seconds_ = batch_is_there_ ? 0 : take_batch();
  batch_is_there_ = false;
  wants_next_batch_ = !backend_->device().is_host();
  step_->start(learning_rate);
  take_next_batch();  // if no exchange through the host made time for it
  const double step_seconds = step_->wait();
  if (batch_is_there_) input_seconds_ += std::max(0.0, beside_seconds_ - step_seconds);
  return step_->knows_loss() ? step_->loss() : 0;
}

void Worker::compile_in_turn(const std::function<void()>& compile) {
  if (workers_->size() == 1) {
    compile();
  } else {
    compile_by_timings(compile, [&] {
      if (workers_->rank() > 0) compile();
    });
  }
  keep_new_timings();
}

void Worker::keep_new_timings() {
  setup_.kernels_timed = tuning_.cache->added();
  setup_.problems_renewed = tuning_.cache->renewed();
  setup_.tuning_seconds = tuning_.cache->seconds_spent();
  const std::string problem = keep_timings(*tuning_.cache);
  if (problem.empty() || std::ranges::find(setup_.warnings, problem) != setup_.warnings.end()) return;
  setup_.warnings.push_back(problem);
}

// Stages exchange tensors as their programs store them.
void Worker::check_same_network() const {
  workers_->set_context("comparing the stages' programs");
  const std::uint64_t own = step_->executable().program().network_hash;
  const std::vector<std::uint64_t> all = comm::all_gather_value(*workers_, own);
  const auto other = std::ranges::find_if(all, [&](std::uint64_t each) { return each != all.front(); });
  if (other == all.end()) return;
  fail(ErrorKind::failed,
       "ranks 0 and {} compiled the network differently, so these stages cannot exchange tensors; use the same version "
       "and "
       "options, and --autotune off if the CPUs differ",
       other - all.begin());
}

void Worker::build() {
  StepConfig& config = config_;
  backend_ = make_backend(config.backend, tuning_);
  replicas_ = make_replicas();
  const bool restores = workers_->rank() == 0 || pipeline_ != nullptr;
  step_ = std::make_unique<PreparedStep>(config, setup_.threads, *backend_, replicas_.get(), workers_->rank(),
                                         restores ? options_.restore : nullptr, link_.get());
  step_->executable().set_beside([this] {
    if (input_ && input_->is_ready()) take_next_batch();  // waiting for it would hold up the other workers
  });
  setup_.model = step_->model().info;
  config.num_classes = setup_.model.classes;
  setup_.counts = count(step_->graph(), step_->model());
  if (config.learning_rate_chosen) {
    config.schedule.initial =
        default_learning_rate(config.optimizer.kind, has_batch_norm(step_->graph()), setup_.counts.gradient_tensors);
  }
  keep_new_timings();
  setup_.memory = step_->memory();
  setup_.planned_bytes = static_cast<std::int64_t>(need_of(config, setup_.memory).total());
  setup_.recomputation = step_->executable().program().recomputation;
  setup_.recomputation.planned_bytes_without *= step_->groups();
  setup_.flops_per_step = step_->flops();
  if (pipeline_ != nullptr) {  // a stage's is not every worker's
    setup_.cuts = step_->session().options().compile.stages->cuts;
    setup_.cut_bytes = step_->executable().program().cut_bytes;
    check_same_network();
    workers_->set_context("comparing the stages' work");
    double all = 0;
    for (const double each : comm::all_gather_value(*workers_, setup_.flops_per_step)) all += each;
    setup_.flops_per_step = all / workers_->size();
  }
  for (const Instruction& instruction : step_->executable().program().instructions) {
    if (!instruction.once) setup_.bytes_per_step += step_->groups() * instruction.cost.bytes;
  }
}

}  // namespace trireme::train
