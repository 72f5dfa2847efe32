#include "trireme/config/tables.hpp"

#include <algorithm>
#include <map>

#include "trireme/optim/optimizer.hpp"

namespace trireme::config {
namespace {

using lab::TimingOptions;
using train::DataOptions;
using train::DistributionOptions;
using train::LoopOptions;
using train::StepOptions;

constexpr const char* kWork = "Work";
constexpr const char* kNetwork = "Network";
constexpr const char* kData = "Data";
constexpr const char* kOptimizer = "Optimizer";
constexpr const char* kMachine = "Machine";
constexpr const char* kWorkers = "Workers";
constexpr const char* kServers = "Parameter servers";
constexpr const char* kOutput = "Output";
constexpr const char* kTraining = "Training";
constexpr const char* kGradients = "Gradients";
constexpr const char* kCheckpoints = "Checkpoints";

constexpr Range kThreads{.low = 0, .high = 4096};
constexpr Range kSeconds{.low = 0, .high = 1e6, .above = true};

template <auto... members>
Option step(Option facts) {
  return option<StepOptions, members...>(std::move(facts));
}
template <auto member>
Option data(Option facts) {
  return option<StepOptions, &StepOptions::data, member>(std::move(facts));
}
template <auto member>
Option workers(Option facts) {
  return option<StepOptions, &StepOptions::distribution, member>(std::move(facts));
}
template <auto member>
Option loop(Option facts) {
  return option<LoopOptions, member>(std::move(facts));
}
template <auto member>
Option timing(Option facts) {
  return option<TimingOptions, member>(std::move(facts));
}

// Each number that a rule of the optimizers has.
Option number_option(const op::RuleNumber& number) {
  Option facts{.name = option_name(number),
               .group = kOptimizer,
               .help = number_help(number),
               .range = number.range == op::NumberRange::share ? kShare : kAboveZero,
               .shows_default = false,
               .kind = Kind::number};
  facts.get = [name = std::string(number.name)](const void* object) -> Json {
    const auto& numbers = static_cast<const StepOptions*>(object)->optimizer_numbers;
    const auto found = numbers.find(name);
    return found == numbers.end() ? Json(nullptr) : Json(found->second);
  };
  facts.set = [name = std::string(number.name)](void* object, const Json& value) {
    static_cast<StepOptions*>(object)->optimizer_numbers[name] = value.get<double>();
  };
  return facts;
}

std::vector<Option> work_options() {
  return {step<&StepOptions::model>({.name = "model",
                                     .group = kWork,
                                     .help = "Network; `trireme models` lists them",
                                     .label = "{}",
                                     .identity = 1}),
          step<&StepOptions::batch_size>(
              {.name = "batch-size",
               .group = kWork,
               .help = "Images per worker and step (default: the network's own; at most 16 for a benchmark without "
                       "--num-batches and --max-seconds)",
               .range = Range{1, 1 << 20},
               .label = "batch {}",
               .title = "batch per worker",
               .identity = 9}),
          step<&StepOptions::seed>({.name = "seed",
                                    .group = kWork,
                                    .help = "Seed of initial values, synthetic data, the order of samples and dropout",
                                    .role = Role::measurement,
                                    .range = kZeroOrMore}),
          step<&StepOptions::forward_only>({.name = "forward-only",
                                            .group = kWork,
                                            .help = "Run the network for inference instead of training it",
                                            .label = "forward + backward|forward",
                                            .identity = 4})};
}

std::vector<Option> network_options() {
  return {step<&StepOptions::num_classes>({.name = "num-classes",
                                           .group = kNetwork,
                                           .help = "Classes (default: the network's own)",
                                           .range = Range{2, 1 << 24}}),
          step<&StepOptions::label_smoothing>({.name = "label-smoothing",
                                               .group = kNetwork,
                                               .help = "Share of the target spread over all classes",
                                               .range = kShare}),
          step<&StepOptions::aux_head>(
              {.name = "aux-head", .group = kNetwork, .help = "Add the auxiliary head (inception3)"}),
          step<&StepOptions::no_dropout>({.name = "no-dropout", .group = kNetwork, .help = "Leave dropout out"})};
}

std::vector<Option> data_options() {
  constexpr Range kCount{1, 1024};
  return {
      data<&DataOptions::dir>({.name = "data-dir",
                               .group = kData,
                               .help = "Data set to train on (default: synthetic images)",
                               .shows_default = false}),
      data<&DataOptions::name>(
          {.name = "data-name",
           .group = kData,
           .help = "Format: tfrecord, folder, idx, cifar10, or auto: what the folder looks like (default)",
           .label = "{}",
           .identity = 5}),
      data<&DataOptions::threads>(
          {.name = "data-threads",
           .group = kData,
           .help = "Threads of each worker that read and decode (default: 1; if a GPU computes, one per core)",
           .role = Role::chosen,
           .range = kCount}),
      data<&DataOptions::prefetch>(
          {.name = "prefetch", .group = kData, .help = "Batches prepared ahead (default: 2)", .range = kCount}),
      data<&DataOptions::max_bad_records>({.name = "max-bad-records",
                                           .group = kData,
                                           .help = "Broken records that each worker may skip, naming them (default: 0)",
                                           .role = Role::measurement,
                                           .range = Range{0, 1e15}}),
      data<&DataOptions::mean>(
          {.name = "mean",
           .group = kData,
           .help = "Subtracted from each pixel value, 0 to 255: one number, or red,green,blue (default: 127.5)"}),
      data<&DataOptions::deviation>(
          {.name = "std", .group = kData, .help = "The values are then divided by this (default: 127.5)"}),
      data<&DataOptions::cache_bytes>({.name = "data-cache",
                                       .group = kData,
                                       .help = "Bytes of files kept in memory (default: 0)",
                                       .range = Range{0, 1e15}}),
      data<&DataOptions::crop>(
          {.name = "crop",
           .group = kData,
           .help = "Part of an image to use: none (all of it), random (for photographs), padded (for CIFAR-10) or "
                   "centre (default: by the size of the images and of the network)"}),
      data<&DataOptions::augment>(
          {.name = "augment",
           .group = kData,
           .help = "Random changes: none, or flip, colour (brightness, saturation, hue, contrast) and added ones, "
                   "separated by commas (default: flip; none for small grey images)"}),
      data<&DataOptions::distortions>(
          {.name = "distortions", .group = kData, .help = "The same as --augment flip,colour"}),
      data<&DataOptions::eval_crop>(
          {.name = "eval-crop",
           .group = kTraining,
           .help = "Of validation images: none or centre (default: none if images and network are small)"})};
}

std::vector<Option> optimizer_options() {
  std::vector<Option> options{
      step<&StepOptions::optimizer>({.name = "optimizer", .group = kOptimizer, .help = optimizer_names()})};
  for (const op::RuleNumber& number : op::kRuleNumbers) {
    if (number.member != &op::OptimizerRule::weight_decay) options.push_back(number_option(number));
  }
  const std::vector<Option> more{
      step<&StepOptions::weight_decay>(
          {.name = "weight-decay",
           .group = kOptimizer,
           .help = "Share of each value added to its gradient; adamw and lion subtract it from the value instead",
           .range = kZeroOrMore}),
      step<&StepOptions::init_learning_rate>(
          {.name = "init-learning-rate",
           .group = kOptimizer,
           .help = "First learning rate (default: one that suits the optimizer and the network)",
           .role = Role::measurement}),
      step<&StepOptions::learning_rate_schedule>(
          {.name = "learning-rate-schedule",
           .group = kOptimizer,
           .help = "constant, piecewise, exponential or cosine (default: constant; piecewise if one is given)",
           .role = Role::measurement,
           .shows_default = false}),
      step<&StepOptions::piecewise_learning_rate_schedule>(
          {.name = "piecewise-learning-rate-schedule",
           .group = kOptimizer,
           .help = "\"LR0;E1;LR1;...\": LR0 until epoch E1, then LR1, ...",
           .role = Role::measurement,
           .shows_default = false}),
      step<&StepOptions::num_learning_rate_warmup_epochs>({.name = "num-learning-rate-warmup-epochs",
                                                           .group = kOptimizer,
                                                           .help = "Epochs of linear warm-up from 0",
                                                           .role = Role::measurement,
                                                           .range = kZeroOrMore}),
      step<&StepOptions::num_epochs_per_decay>(
          {.name = "num-epochs-per-decay",
           .group = kOptimizer,
           .help = "exponential: epochs between decays (default: 2); cosine: epochs of the whole descent (default: 90)",
           .role = Role::measurement,
           .range = kAboveZero}),
      step<&StepOptions::learning_rate_decay_factor>({.name = "learning-rate-decay-factor",
                                                      .group = kOptimizer,
                                                      .help = "exponential: factor of one decay (default: 0.94)",
                                                      .role = Role::measurement,
                                                      .range = Range{.low = 0, .high = 1, .above = true}})};
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

std::vector<Option> machine_options() {
  return {
      step<&StepOptions::device>(
          {.name = "device",
           .group = kMachine,
           .help = "Where to compute: cpu, cuda, or cuda:N for one of several GPUs; bench compares several: cpu,cuda",
           .label = "{}",
           .identity = 2}),
      step<&StepOptions::backend>({.name = "backend",
                                   .group = kMachine,
                                   .help = "Kernels to use: onednn or reference (default: the fastest in this build)",
                                   .shows_default = false}),
      step<&StepOptions::precision>(
          {.name = "precision",
           .group = kMachine,
           .help = "fp32; bf16: activations and products in bf16, weights and sums in fp32; GPUs also have fp16 (with "
                   "a scaled loss) and tf32 (10-bit factors)",
           .names = {"fp32", "tf32", "bf16", "fp16"},
           .label = "{}",
           .identity = 3}),
      step<&StepOptions::data_format>({.name = "data-format",
                                       .group = kMachine,
                                       .help = "Order of activations in memory: auto, nchw or nhwc",
                                       .names = {"auto", "nchw", "nhwc", "NCHW", "NHWC"}}),
      step<&StepOptions::autotune>(
          {.name = "autotune",
           .group = kMachine,
           .help = "Time the kernels for each operation and use the fastest: off, fast or full",
           .names = {"off", "fast", "full"}}),
      step<&StepOptions::exact>({.name = "exact",
                                 .group = kMachine,
                                 .help = "Exclude kernels that round more than the direct sum (Winograd)"}),
      step<&StepOptions::tune_cache>({.name = "tune-cache",
                                      .group = kMachine,
                                      .help = "File that keeps the timings (default: in the user's cache folder)",
                                      .role = Role::measurement}),
      step<&StepOptions::recompute>(
          {.name = "recompute",
           .group = kMachine,
           .help = "Save memory: compute results again for backward instead of keeping them: none, cheap (all but "
                   "convolutions) or full",
           .names = {"none", "cheap", "full"}}),
      step<&StepOptions::num_intra_threads>(
          {.name = "num-intra-threads",
           .group = kMachine,
           .help = "Threads of one operation, divided over the groups of --batch-split; 0: one per usable core",
           .range = kThreads,
           .label = "{} thread|{} threads",
           .title = "threads per worker",
           .identity = 8,
           .environment = "TRIREME_NUM_INTRA_THREADS"}),  // set by a launch whose workers share cores, as the next one
      step<&StepOptions::bind>({.name = "bind",
                                .group = kMachine,
                                .help = "Bind threads to cores (default), or leave them to the system",
                                .environment = "TRIREME_BIND",
                                .spelling = "--bind,!--no-bind"}),
      step<&StepOptions::num_inter_threads>({.name = "num-inter-threads",
                                             .group = kMachine,
                                             .help = "Operations that run at the same time; 0: one",
                                             .range = kThreads,
                                             .title = "operations at a time"}),
      step<&StepOptions::batch_split>(
          {.name = "batch-split",
           .group = kMachine,
           .help = "Groups of cores that share the images of a batch, or auto: the fastest by timing. The result is "
                   "that of the whole batch",
           .role = Role::chosen}),
      step<&StepOptions::batch_norm_over>(
          {.name = "batch-norm-over",
           .group = kMachine,
           .help = "Images over which batch norm takes its statistics if the batch is split: batch (all), or group "
                   "(each group's own, as separate processes would)",
           .names = {"batch", "group"}})};
}

std::vector<Option> worker_options() {
  return {
      workers<&DistributionOptions::variable_update>(
          {.name = "variable-update",
           .group = kWorkers,
           .help = "How workers (see `trireme launch`) agree on the variables: all_reduce, parameter_server, "
                   "distributed_replicated, independent (they exchange nothing), or auto: parameter_server if there "
                   "are servers, all_reduce if several workers train",
           .names = {"auto", "all_reduce", "parameter_server", "distributed_replicated", "independent"},
           .label = "{}",
           .identity = 10}),
      workers<&DistributionOptions::all_reduce>(
          {.name = "all-reduce",
           .group = kWorkers,
           .help = "How gradients are summed: auto (by size and topology), library (MPI's own), ring, "
                   "halving_doubling, tree, hierarchical (shared memory within a node), or nccl (between GPUs; auto "
                   "uses it if each worker has its own GPU)"}),
      workers<&DistributionOptions::network_file>(
          {.name = "network-file",
           .group = kWorkers,
           .help = "Figures for --all-reduce auto, measured by `trireme net` (default: the file in the user's cache "
                   "folder, if there is one)",
           .role = Role::measurement}),
      workers<&DistributionOptions::bucket_mb>({.name = "bucket-mb",
                                                .group = kWorkers,
                                                .help = "Megabytes of gradients that are exchanged together, or auto",
                                                .title = "bucket (MB)"}),
      workers<&DistributionOptions::overlap>({.name = "overlap",
                                              .group = kWorkers,
                                              .help = "Exchange gradients during backward: on or off",
                                              .names = {"on", "off"}}),
      workers<&DistributionOptions::gradient_precision>(
          {.name = "gradient-precision",
           .group = kWorkers,
           .help = "Of gradients between machines: fp32, fp16 or bf16; sums are fp32"}),
      workers<&DistributionOptions::sync_batch_norm>(
          {.name = "sync-batch-norm",
           .group = kWorkers,
           .help = "Batch norm over the images of all workers (default: each worker's own)"}),
      workers<&DistributionOptions::check_replicas>(
          {.name = "check-replicas",
           .group = kWorkers,
           .help = "Compare the workers' variables every N steps; 0: only at the end",
           .range = Range{0, 1e9}}),
      workers<&DistributionOptions::comm_timeout>(
          {.name = "comm-timeout",
           .group = kWorkers,
           .help = "End the job if a worker does not answer for this many seconds",
           .role = Role::measurement,
           .range = kSeconds}),
      step<&StepOptions::deterministic>(
          {.name = "deterministic",
           .group = kWorkers,
           .help = "The same bits in every run: nothing is chosen by timing (--autotune off)"})};
}

std::vector<Option> server_options() {
  return {
      workers<&DistributionOptions::synchronous>(
          {.name = "sync", .group = kServers, .help = "One update with the mean of all workers' gradients (default)"}),
      workers<&DistributionOptions::asynchronous>(
          {.name = "async", .group = kServers, .help = "Servers apply each worker's gradients as they arrive"}),
      workers<&DistributionOptions::staleness>(
          {.name = "staleness",
           .group = kServers,
           .help = "Asynchronous, but no worker gets more than N steps ahead of the slowest",
           .range = Range{0, 1e9}}),
      workers<&DistributionOptions::backup_workers>(
          {.name = "backup-workers",
           .group = kServers,
           .help = "Synchronous, without waiting for the last N workers in each step"}),
      workers<&DistributionOptions::placement>(
          {.name = "placement",
           .group = kServers,
           .help = "Which server has which variable: round_robin (in order of creation), greedy (by bytes) or split "
                   "(large ones in pieces, so that servers carry the same; default)",
           .label = "{}",
           .shows_default = false})};
}

template <typename... Lists>
std::vector<Option> joined(Lists... lists) {
  std::vector<Option> all;
  (all.insert(all.end(), lists.begin(), lists.end()), ...);
  return all;
}

}  // namespace

const Table<StepOptions>& step_table() {
  static const Table<StepOptions> table(
      joined(work_options(), network_options(), data_options(), optimizer_options(), machine_options(),
             worker_options(), server_options(),
             std::vector{step<&StepOptions::trace_steps>({.name = "trace-steps",
                                                          .group = kOutput,
                                                          .help = "Steps that --trace shows",
                                                          .role = Role::output,
                                                          .range = kPositiveCount})}));
  return table;
}

const Table<LoopOptions>& loop_table() {
  static const Table<LoopOptions> table({
      loop<&LoopOptions::epochs>(
          {.name = "epochs", .group = kTraining, .help = "Times that all images are used", .range = kAboveZero}),
      loop<&LoopOptions::evaluate_on>({.name = "eval",
                                       .group = kTraining,
                                       .help = "Workers that evaluate on the validation images: all, first or none",
                                       .names = {"all", "first", "none"}}),
      loop<&LoopOptions::evaluate_every>({.name = "eval-every",
                                          .group = kTraining,
                                          .help = "Epochs between evaluations; 0: only at the end",
                                          .range = kZeroOrMore}),
      loop<&LoopOptions::eval_batch_size>({.name = "eval-batch-size",
                                           .group = kTraining,
                                           .help = "Images at a time (default: --batch-size)",
                                           .range = Range{.low = 1}}),
      loop<&LoopOptions::target_accuracy>({.name = "target-accuracy",
                                           .group = kTraining,
                                           .help = "Stop at this share of top-1, from 0 to 1; 0: never",
                                           .range = Range{0, 1}}),
      loop<&LoopOptions::average_decay>(
          {.name = "average",
           .group = kTraining,
           .help = "Keep moving averages of all variables with this decay, such as 0.999, and evaluate these; 0: no",
           .range = kShare}),
      loop<&LoopOptions::reference_batch>(
          {.name = "scale-learning-rate",
           .group = kGradients,
           .help = "Learning rates are for this global batch, such as 256, and are scaled to the actual one (linearly; "
                   "best with --num-learning-rate-warmup-epochs); 0: do not scale",
           .range = kZeroOrMore}),
      loop<&LoopOptions::accumulate>({.name = "accumulate",
                                      .group = kGradients,
                                      .help = "Batches whose mean gradient makes one update",
                                      .range = Range{1, 1 << 20}}),
      loop<&LoopOptions::clip_norm>({.name = "clip-norm",
                                     .group = kGradients,
                                     .help = "Largest norm of all gradients together; 0: no limit",
                                     .range = kZeroOrMore}),
      loop<&LoopOptions::lars>({.name = "lars",
                                .group = kGradients,
                                .help = "Layer-wise rates for large batches, with this coefficient, such as 0.001",
                                .range = kAboveZero}),
      loop<&LoopOptions::skip_batch_norm_decay>({.name = "skip-batch-norm-decay",
                                                 .group = kGradients,
                                                 .help = "No weight decay for scales and offsets of batch norm"}),
      loop<&LoopOptions::checkpoint_dir>({.name = "checkpoint-dir",
                                          .group = kCheckpoints,
                                          .help = "Folder for checkpoints (default: none are written)",
                                          .shows_default = false}),
      loop<&LoopOptions::checkpoint_every>({.name = "checkpoint-every",
                                            .group = kCheckpoints,
                                            .help = "Steps between checkpoints; 0: one after each epoch",
                                            .range = kZeroOrMore}),
      loop<&LoopOptions::keep_checkpoints>({.name = "keep-checkpoints",
                                            .group = kCheckpoints,
                                            .help = "Checkpoints to keep: the newest",
                                            .range = Range{1, 1e9}}),
      loop<&LoopOptions::resume>(
          {.name = "resume", .group = kCheckpoints, .help = "Continue from the newest checkpoint, if there is one"}),
      loop<&LoopOptions::allow_other_data>({.name = "allow-other-data",
                                            .group = kCheckpoints,
                                            .help = "With --resume: also on another data set than the checkpoint's"}),
      loop<&LoopOptions::display_every>({.name = "display-every",
                                         .group = kOutput,
                                         .help = "Steps between points of the curves in the record and in TensorBoard",
                                         .role = Role::measurement,
                                         .range = kPositiveCount}),
  });
  return table;
}

const Table<TimingOptions>& timing_table() {
  static const Table<TimingOptions> table({
      timing<&TimingOptions::num_batches>({.name = "num-batches",
                                           .group = kWork,
                                           .help = "Timed steps per repeat (default: 100, within --max-seconds)",
                                           .role = Role::measurement,
                                           .range = kPositiveCount}),
      timing<&TimingOptions::num_warmup_batches>({.name = "num-warmup-batches",
                                                  .group = kWork,
                                                  .help = "Steps before the timed ones",
                                                  .role = Role::measurement,
                                                  .range = Range{0, 1e9}}),
      timing<&TimingOptions::repeats>(
          {.name = "repeats",
           .group = kWork,
           .help = "How often the timed steps are measured (default: 1; 5 with --io-overhead)",
           .role = Role::measurement,
           .range = Range{1, 100'000}}),
      timing<&TimingOptions::max_seconds>(
          {.name = "max-seconds",
           .group = kWork,
           .help = "End warm-up and timed steps after this time, warm-up after a quarter of it (default: 100 without "
                   "--num-batches, else no limit)",
           .role = Role::measurement,
           .range = kAboveZero}),
      timing<&TimingOptions::io_overhead>(
          {.name = "io-overhead",
           .group = kWork,
           .help =
               "After each repeat, also measure steps on a batch that stays in memory, and print what input costs"}),
      timing<&TimingOptions::baseline>(
          {.name = "baseline",
           .group = kWork,
           .help = "After each repeat, also measure one worker alone and workers that exchange nothing",
           .role = Role::measurement}),
      timing<&TimingOptions::display_every>({.name = "display-every",
                                             .group = kOutput,
                                             .help = "Print a line every N steps",
                                             .role = Role::measurement,
                                             .range = kPositiveCount}),
      timing<&TimingOptions::profile>({.name = "profile",
                                       .group = kOutput,
                                       .help = "Time every instruction and print where a step goes, longest first",
                                       .role = Role::output}),
      timing<&TimingOptions::profile_rows>({.name = "profile-rows",
                                            .group = kOutput,
                                            .help = "Instructions that --profile lists",
                                            .role = Role::output,
                                            .range = kPositiveCount}),
  });
  return table;
}

const Option* find_option(std::string_view name) {
  if (const Option* found = step_table().find(name)) return found;
  if (const Option* found = timing_table().find(name)) return found;
  return loop_table().find(name);
}

std::vector<std::string> identity() {
  std::map<int, std::string> order{{6, "workers"}, {7, "ps"}};
  for (const Option& each : step_table()) order[each.identity] = each.name;
  order.erase(0);
  std::vector<std::string> names;
  for (auto& [place, name] : order) names.push_back(std::move(name));
  return names;
}

}  // namespace trireme::config
