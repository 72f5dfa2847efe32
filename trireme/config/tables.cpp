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
using train::OutputOptions;
using train::StepOptions;

constexpr const char* kWork = "Work";
constexpr const char* kNetwork = "Network";
constexpr const char* kOptimizer = "Optimizer";
constexpr const char* kMachine = "Machine";
constexpr const char* kWorkers = "Workers";
constexpr const char* kOutput = "Output";
constexpr const char* kTraining = "Training";
constexpr const char* kGradients = "Gradients";
constexpr const char* kCheckpoints = "Checkpoints";

constexpr Range kThreads{.low = 0, .high = 4096};

template <auto member>
Option data(const char* name, std::string help, Option facts = {}) {
  return entry<&StepOptions::data, member>(name, std::move(help), std::move(facts));
}
template <auto member>
Option workers(const char* name, std::string help, Option facts = {}) {
  return entry<&StepOptions::distribution, member>(name, std::move(help), std::move(facts));
}
template <auto member>
Option written(const char* name, std::string help, Option facts = {}) {
  facts.group = kOutput;
  facts.role = Role::run;
  return entry<member>(name, std::move(help), std::move(facts));
}

// Each number that a rule of the optimizers has.
Option number_option(const op::RuleNumber& number) {
  Option facts{.name = option_name(number),
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

void add_work(std::vector<Option>& all) {
  add(all, kWork,
      {entry<&StepOptions::model>("model", "Network; `trireme models` lists them", {.label = "{}", .identity = 1}),
       entry<&StepOptions::batch_size>(
           "batch-size",
           "Images per worker and step (default: the network's own; at most 16 for a benchmark without "
           "--num-batches and --max-seconds)",
           {.range = Range{1, 1 << 20}, .label = "batch {}", .title = "batch per worker", .identity = 9}),
       entry<&StepOptions::seed>("seed", "Seed of initial values, synthetic data, the order of samples and dropout",
                                 {.role = Role::measurement, .range = kZeroOrMore}),
       entry<&StepOptions::forward_only>("forward-only", "Run the network for inference instead of training it",
                                         {.label = "forward + backward|forward", .identity = 4})});
}

void add_network(std::vector<Option>& all) {
  add(all, kNetwork,
      {entry<&StepOptions::num_classes>("num-classes", "Classes (default: the network's own)",
                                        {.range = Range{2, 1 << 24}}),
       entry<&StepOptions::label_smoothing>("label-smoothing", "Share of the target spread over all classes",
                                            {.range = kShare}),
       entry<&StepOptions::aux_head>("aux-head", "Add the auxiliary head (inception3)"),
       entry<&StepOptions::no_dropout>("no-dropout", "Train without dropout")});
}

void add_data(std::vector<Option>& all) {
  constexpr Range kCount{1, 1024};
  add(all, kDataGroup,
      {data<&DataOptions::dir>("data-dir", "Data set to train on (default: synthetic images)",
                               {.shows_default = false}),
       data<&DataOptions::name>("data-name",
                                "Format: tfrecord, folder, idx, cifar10, or auto: what the folder looks like (default)",
                                {.label = "{}", .identity = 5}),
       data<&DataOptions::threads>(
           "data-threads", "Threads of each worker that read and decode (default: 1; if a GPU computes, one per core)",
           {.role = Role::chosen, .range = kCount}),
       data<&DataOptions::prefetch>("prefetch", "Batches prepared ahead (default: 2)", {.range = kCount}),
       data<&DataOptions::max_bad_records>("max-bad-records",
                                           "Broken records that each worker may skip, naming them (default: 0)",
                                           {.role = Role::measurement, .range = Range{0, 1e15}}),
       data<&DataOptions::mean>(
           "mean", "Subtracted from each pixel value, 0 to 255: one number, or red,green,blue (default: 127.5)"),
       data<&DataOptions::deviation>("std", "The values are then divided by this (default: 127.5)"),
       data<&DataOptions::cache_bytes>("data-cache", "Bytes of files kept in memory (default: 0)",
                                       {.range = Range{0, 1e15}}),
       data<&DataOptions::crop>("crop",
                                "Part of an image to use: none (all of it), random (for photographs), padded (for "
                                "CIFAR-10) or centre (default: by the size of the images and of the network)"),
       data<&DataOptions::augment>("augment",
                                   "Random changes: none, or flip, colour (brightness, saturation, hue, contrast) and "
                                   "added ones, separated by commas (default: flip; none for small grey images)"),
       data<&DataOptions::distortions>("distortions", "The same as --augment flip,colour"),
       data<&DataOptions::eval_crop>(
           "eval-crop", "Crop of validation images: none or centre (default: none if images and network are small)")});
}

void add_optimizer(std::vector<Option>& all) {
  std::vector<Option> options{entry<&StepOptions::optimizer>("optimizer", optimizer_names())};
  for (const op::RuleNumber& number : op::kRuleNumbers) {
    if (number.member != &op::OptimizerRule::weight_decay) options.push_back(number_option(number));
  }
  add(all, kOptimizer, std::move(options));
  add(all, kOptimizer,
      {entry<&StepOptions::weight_decay>(
           "weight-decay",
           "Share of each value added to its gradient; adamw and lion subtract it from the value instead",
           {.range = kZeroOrMore}),
       entry<&StepOptions::init_learning_rate>(
           "init-learning-rate", "Initial learning rate (default: one that suits the optimizer and the network)",
           {.role = Role::measurement}),
       entry<&StepOptions::learning_rate_schedule>(
           "learning-rate-schedule",
           "constant, piecewise, exponential or cosine (default: constant; piecewise if one is given)",
           {.role = Role::measurement, .shows_default = false}),
       entry<&StepOptions::piecewise_learning_rate_schedule>("piecewise-learning-rate-schedule",
                                                             "\"LR0;E1;LR1;...\": LR0 until epoch E1, then LR1, ...",
                                                             {.role = Role::measurement, .shows_default = false}),
       entry<&StepOptions::num_learning_rate_warmup_epochs>("num-learning-rate-warmup-epochs",
                                                            "Epochs of linear warm-up from 0",
                                                            {.role = Role::measurement, .range = kZeroOrMore}),
       entry<&StepOptions::num_epochs_per_decay>(
           "num-epochs-per-decay",
           "exponential: epochs between decays (default: 2); cosine: epochs of the whole descent (default: 90)",
           {.role = Role::measurement, .range = kAboveZero}),
       entry<&StepOptions::learning_rate_decay_factor>(
           "learning-rate-decay-factor", "exponential: factor of one decay (default: 0.94)",
           {.role = Role::measurement, .range = Range{.low = 0, .high = 1, .above = true}})});
}

void add_machine(std::vector<Option>& all) {
  add(all, kMachine,
      {entry<&StepOptions::device>(
           "device", "Where to compute: cpu, cuda, or cuda:N for one of several GPUs; bench compares several: cpu,cuda",
           {.label = "{}", .identity = 2}),
       entry<&StepOptions::backend>("backend",
                                    "Kernels to use: onednn or reference (default: the fastest in this build)",
                                    {.shows_default = false}),
       entry<&StepOptions::precision>(
           "precision",
           "fp32; bf16: activations and products in bf16, weights and sums in fp32; GPUs also "
           "have fp16 (with a scaled loss) and tf32 (10-bit factors)",
           {.names = {"fp32", "tf32", "bf16", "fp16"}, .label = "{}", .identity = 3}),
       entry<&StepOptions::data_format>("data-format", "Order of activations in memory: auto, nchw or nhwc",
                                        {.names = {"auto", "nchw", "nhwc", "NCHW", "NHWC"}}),
       entry<&StepOptions::autotune>("autotune",
                                     "Time the kernels for each operation and use the fastest: off, fast or full",
                                     {.names = {"off", "fast", "full"}}),
       entry<&StepOptions::exact>("exact", "Exclude kernels that round more than the direct sum (Winograd)"),
       entry<&StepOptions::tune_cache>("tune-cache",
                                       "File that keeps the timings (default: in the user's cache folder)",
                                       {.role = Role::measurement}),
       entry<&StepOptions::recompute>("recompute",
                                      "Save memory: compute results again for backward instead of keeping them: none, "
                                      "cheap (all but convolutions) or full",
                                      {.names = {"none", "cheap", "full"}}),
       entry<&StepOptions::memory_limit>("memory-limit",
                                         "GB that each worker may use on the host (default: its share of what is free)",
                                         {.range = kAboveZero}),
       entry<&StepOptions::num_intra_threads>(
           "num-intra-threads",
           "Threads of one operation, divided over the groups of --batch-split; 0: one per usable core",
           {.range = kThreads,
            .label = "{} thread|{} threads",
            .title = "threads per worker",
            .identity = 8,
            .environment = "TRIREME_NUM_INTRA_THREADS"}),  // set by a launch whose workers share cores, as the next one
       entry<&StepOptions::bind>("bind", "Bind threads to cores (default), or leave them to the system",
                                 {.environment = "TRIREME_BIND", .spelling = "--bind,!--no-bind"}),
       entry<&StepOptions::num_inter_threads>("num-inter-threads", "Operations that run at the same time; 0: one",
                                              {.range = kThreads, .title = "operations at a time"}),
       entry<&StepOptions::batch_split>("batch-split",
                                        "Groups of cores that share the images of a batch, or auto: the fastest by "
                                        "timing. The result is that of the whole batch",
                                        {.role = Role::chosen}),
       entry<&StepOptions::batch_norm_over>("batch-norm-over",
                                            "Images over which batch norm takes its statistics if the batch is split: "
                                            "batch (all), or group (each group's own, as separate processes would)",
                                            {.names = {"batch", "group"}})});
}

void add_workers(std::vector<Option>& all) {
  add(all, kWorkers,
      {workers<&DistributionOptions::variable_update>(
           "variable-update",
           "How workers (see `trireme launch`) agree on the variables: all_reduce, parameter_server, "
           "distributed_replicated, independent (they exchange nothing), or auto: parameter_server if there are "
           "servers, all_reduce if several workers train",
           {.names = {"auto", "all_reduce", "parameter_server", "distributed_replicated", "independent"},
            .label = "{}",
            .identity = 10}),
       workers<&DistributionOptions::all_reduce>(
           "all-reduce",
           "How gradients are summed: auto (by size and topology), library (MPI's own), ring, halving_doubling, "
           "tree, hierarchical (shared memory within a node), or nccl (between GPUs; auto uses it if each worker "
           "has its own GPU)"),
       workers<&DistributionOptions::network_file>("network-file",
                                                   "Figures for --all-reduce auto, measured by `trireme net` "
                                                   "(default: the file in the user's cache folder, if there is one)",
                                                   {.role = Role::measurement}),
       workers<&DistributionOptions::parallel>(
           "parallel",
           "What workers share: data (each has all layers), pipeline:S (S stages of equally many workers each), "
           "hybrid:3-1 (the workers of each stage), a JSON file with stages, or auto: the fastest by measurements",
           {.label = "{}"}),
       workers<&DistributionOptions::micro_batches>(
           "micro-batches",
           "In a pipeline: equal parts of a step's images that follow each other (default: about four "
           "per stage)",
           {.role = Role::chosen, .range = Range{1, 1 << 16}, .label = "{} micro-batch|{} micro-batches"}),
       workers<&DistributionOptions::schedule>(
           "schedule", "In a pipeline: order of the work in each stage; auto: 1f1b, or that of --parallel auto",
           {.role = Role::chosen, .names = {"auto", "gpipe", "1f1b", "interleaved", "zb-h1"}, .label = "schedule {}"}),
       workers<&DistributionOptions::bucket_mb>(
           "bucket-mb", "Megabytes of gradients that are exchanged together, or auto", {.title = "bucket (MB)"}),
       workers<&DistributionOptions::overlap>("overlap", "Exchange gradients during backward: on or off",
                                              {.names = {"on", "off"}}),
       workers<&DistributionOptions::gradient_precision>(
           "gradient-precision", "Precision of gradients between machines: fp32, fp16 or bf16; sums are fp32"),
       workers<&DistributionOptions::sync_batch_norm>(
           "sync-batch-norm", "Batch norm over the images of all workers (default: each worker's own)"),
       workers<&DistributionOptions::shard_optimizer>(
           "shard-optimizer",
           "Divide the optimizer's state among the workers of all-reduce: each updates its part of the weights and "
           "sends it to the others",
           {.label = "sharded optimizer"}),
       workers<&DistributionOptions::elastic>(
           "elastic",
           "MIN:MAX workers of all-reduce: if some are lost, the others finish the same step, as long as MIN are left"),
       workers<&DistributionOptions::check_replicas>("check-replicas",
                                                     "Compare the workers' variables every N steps; 0: only at the end",
                                                     {.range = Range{0, 1e9}}),
       workers<&DistributionOptions::comm_timeout>("comm-timeout",
                                                   "End the job if a worker does not answer for this many seconds",
                                                   {.role = Role::measurement, .range = kSeconds}),
       entry<&StepOptions::deterministic>("deterministic",
                                          "The same bits in every run: nothing is chosen by timing (--autotune off)")});
}

void add_servers(std::vector<Option>& all) {
  add(all, kServerGroup,
      {workers<&DistributionOptions::synchronous>("sync",
                                                  "One update with the mean of all workers' gradients (default)"),
       workers<&DistributionOptions::asynchronous>("async", "Servers apply each worker's gradients as they arrive"),
       workers<&DistributionOptions::staleness>(
           "staleness", "Asynchronous, but no worker gets more than N steps ahead of the slowest",
           {.range = Range{0, 1e9}}),
       workers<&DistributionOptions::backup_workers>("backup-workers",
                                                     "Synchronous, without waiting for the last N workers in each step",
                                                     {.range = Range{0, 1e9}}),
       workers<&DistributionOptions::placement>(
           "placement",
           "Which server has which variable: round_robin (in order of creation), greedy (by bytes) or split (large "
           "ones in pieces, so that servers carry the same; default)",
           {.label = "{}", .shows_default = false})});
}

std::vector<Option> step_options() {
  std::vector<Option> all;
  for (const auto add_group : {add_work, add_network, add_data, add_optimizer, add_machine, add_workers, add_servers}) {
    add_group(all);
  }
  add(all, kOutput,
      {entry<&StepOptions::trace_steps>("trace-steps", "Number of steps in the trace",
                                        {.role = Role::run, .range = kPositiveCount})});
  return all;
}

std::vector<Option> loop_options() {
  std::vector<Option> all;
  add(all, kTraining,
      {entry<&LoopOptions::epochs>("epochs", "Passes over the training images", {.range = kAboveZero}),
       entry<&LoopOptions::evaluate_on>("eval", "Workers that evaluate on the validation images: all, first or none",
                                        {.names = {"all", "first", "none"}}),
       entry<&LoopOptions::evaluate_every>("eval-every", "Epochs between evaluations; 0: only at the end",
                                           {.range = kZeroOrMore}),
       entry<&LoopOptions::eval_batch_size>("eval-batch-size", "Images at a time (default: --batch-size)",
                                            {.range = Range{.low = 1}}),
       entry<&LoopOptions::target_accuracy>("target-accuracy", "Stop at this share of top-1, from 0 to 1; 0: never",
                                            {.range = Range{0, 1}}),
       entry<&LoopOptions::average_decay>(
           "average", "Keep moving averages of all variables with this decay, such as 0.999, and evaluate these; 0: no",
           {.range = kShare})});
  add(all, kGradients,
      {entry<&LoopOptions::reference_batch>(
           "scale-learning-rate",
           "Global batch that learning rates are meant for, such as 256; they are scaled to the actual one (linearly; "
           "best with --num-learning-rate-warmup-epochs); 0: do not scale",
           {.range = kZeroOrMore}),
       entry<&LoopOptions::accumulate>("accumulate", "Batches whose mean gradient makes one update",
                                       {.range = Range{1, 1 << 20}}),
       entry<&LoopOptions::clip_norm>("clip-norm", "Largest norm of all gradients together; 0: no limit",
                                      {.range = kZeroOrMore}),
       entry<&LoopOptions::lars>("lars", "Layer-wise rates for large batches, with this coefficient, such as 0.001",
                                 {.range = kAboveZero}),
       entry<&LoopOptions::skip_batch_norm_decay>("skip-batch-norm-decay",
                                                  "No weight decay for scales and offsets of batch norm")});
  add(all, kCheckpoints,
      {entry<&LoopOptions::checkpoint_dir>("checkpoint-dir", "Folder for checkpoints (default: none are written)",
                                           {.shows_default = false}),
       entry<&LoopOptions::checkpoint_every>("checkpoint-every", "Steps between checkpoints; 0: one after each epoch",
                                             {.range = kZeroOrMore}),
       entry<&LoopOptions::keep_checkpoints>("keep-checkpoints", "Number of checkpoints to keep, the newest ones",
                                             {.range = Range{1, 1e9}}),
       entry<&LoopOptions::resume>("resume", "Continue from the newest checkpoint, if there is one"),
       entry<&LoopOptions::allow_other_data>("allow-other-data",
                                             "With --resume: allow another data set than the checkpoint's"),
       entry<&LoopOptions::replay>(
           "replay",
           "Repeat the run that wrote this --membership-log, given the same options, in this process, and compare the "
           "weights",
           {.role = Role::run})});
  add(all, kOutput,
      {entry<&LoopOptions::display_every>("display-every",
                                          "Steps between points of the curves in the record and in TensorBoard",
                                          {.role = Role::measurement, .range = kPositiveCount})});
  return all;
}

std::vector<Option> timing_options() {
  std::vector<Option> all;
  add(all, kWork,
      {entry<&TimingOptions::num_batches>("num-batches", "Timed steps per repeat (default: 100, within --max-seconds)",
                                          {.role = Role::measurement, .range = kPositiveCount}),
       entry<&TimingOptions::num_warmup_batches>("num-warmup-batches", "Steps before the timed ones",
                                                 {.role = Role::measurement, .range = Range{0, 1e9}}),
       entry<&TimingOptions::repeats>("repeats",
                                      "Number of times to repeat the timed steps (default: 1; 5 with --io-overhead)",
                                      {.role = Role::measurement, .range = Range{1, 100'000}}),
       entry<&TimingOptions::max_seconds>("max-seconds",
                                          "End warm-up and timed steps after this time, warm-up after a quarter of it "
                                          "(default: 100 without --num-batches, else no limit)",
                                          {.role = Role::measurement, .range = kAboveZero}),
       entry<&TimingOptions::io_overhead>(
           "io-overhead",
           "After each repeat, also measure steps on a batch that stays in memory, and print what input costs"),
       entry<&TimingOptions::baseline>(
           "baseline", "After each repeat, also measure one worker alone and workers that exchange nothing",
           {.role = Role::measurement})});
  add(all, kOutput,
      {entry<&TimingOptions::display_every>("display-every", "Print a line every N steps",
                                            {.role = Role::measurement, .range = kPositiveCount}),
       entry<&TimingOptions::profile>("profile", "Time every instruction and print where a step goes, longest first",
                                      {.role = Role::run}),
       entry<&TimingOptions::profile_rows>("profile-rows", "Number of instructions that --profile lists",
                                           {.role = Role::run, .range = kPositiveCount})});
  return all;
}

const Option* find_in(std::string_view name, const auto&... tables) {
  const Option* found = nullptr;
  ((found = found != nullptr ? found : tables.find(name)), ...);
  return found;
}

}  // namespace

const Table<StepOptions>& step_table() {
  static const Table<StepOptions> table(step_options());
  return table;
}

const Table<LoopOptions>& loop_table() {
  static const Table<LoopOptions> table(loop_options());
  return table;
}

const Table<TimingOptions>& timing_table() {
  static const Table<TimingOptions> table(timing_options());
  return table;
}

const Table<OutputOptions>& output_table() {
  static const Table<OutputOptions> table(
      {written<&OutputOptions::tensorboard>("tensorboard", "Write curves for TensorBoard into this folder"),
       written<&OutputOptions::csv>("csv", "Append a line for each epoch to this file"),
       written<&OutputOptions::record>("record",
                                       "Write the record (JSON) to this file; -: to stdout, and text to stderr"),
       written<&OutputOptions::membership_log>(
           "membership-log", "Write to this file which workers made which steps, for --replay (--elastic)"),
       written<&OutputOptions::trace>(
           "trace", "Write a trace of all ranks to this file, for ui.perfetto.dev and `trireme report --trace`",
           {.spelling = "--trace,--trace-file"})});
  return table;
}

const Option* find_option(std::string_view name) {
  return find_in(name, step_table(), timing_table(), loop_table(), output_table(), cluster_table(), launch_table());
}

std::vector<std::string> identity() {
  std::map<int, std::string> order;
  for (const Option& each : step_table()) order[each.identity] = each.name;
  for (const Option& each : launch_table()) order[each.identity] = each.name;
  order.erase(0);
  std::vector<std::string> names;
  for (auto& [place, name] : order) names.push_back(std::move(name));
  return names;
}

}  // namespace trireme::config
