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

template <typename Struct, auto... members>
Option declare(const char* name, std::string help, Option facts) {
  facts.name = name;
  facts.help = std::move(help);
  return option<Struct, members...>(std::move(facts));
}
template <auto member>
Option step(const char* name, std::string help, Option facts = {}) {
  return declare<StepOptions, member>(name, std::move(help), std::move(facts));
}
template <auto member>
Option data(const char* name, std::string help, Option facts = {}) {
  return declare<StepOptions, &StepOptions::data, member>(name, std::move(help), std::move(facts));
}
template <auto member>
Option workers(const char* name, std::string help, Option facts = {}) {
  return declare<StepOptions, &StepOptions::distribution, member>(name, std::move(help), std::move(facts));
}
template <auto member>
Option loop(const char* name, std::string help, Option facts = {}) {
  return declare<LoopOptions, member>(name, std::move(help), std::move(facts));
}
template <auto member>
Option timing(const char* name, std::string help, Option facts = {}) {
  return declare<TimingOptions, member>(name, std::move(help), std::move(facts));
}

// Appends the options of a group of the help.
void add(std::vector<Option>& all, const char* group, std::vector<Option> options) {
  for (Option& each : options) {
    each.group = group;
    all.push_back(std::move(each));
  }
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
      {step<&StepOptions::model>("model", "Network; `trireme models` lists them", {.label = "{}", .identity = 1}),
       step<&StepOptions::batch_size>(
           "batch-size",
           "Images per worker and step (default: the network's own; at most 16 for a benchmark without "
           "--num-batches and --max-seconds)",
           {.range = Range{1, 1 << 20}, .label = "batch {}", .title = "batch per worker", .identity = 9}),
       step<&StepOptions::seed>("seed", "Seed of initial values, synthetic data, the order of samples and dropout",
                                {.role = Role::measurement, .range = kZeroOrMore}),
       step<&StepOptions::forward_only>("forward-only", "Run the network for inference instead of training it",
                                        {.label = "forward + backward|forward", .identity = 4})});
}

void add_network(std::vector<Option>& all) {
  add(all, kNetwork,
      {step<&StepOptions::num_classes>("num-classes", "Classes (default: the network's own)",
                                       {.range = Range{2, 1 << 24}}),
       step<&StepOptions::label_smoothing>("label-smoothing", "Share of the target spread over all classes",
                                           {.range = kShare}),
       step<&StepOptions::aux_head>("aux-head", "Add the auxiliary head (inception3)"),
       step<&StepOptions::no_dropout>("no-dropout", "Train without dropout")});
}

void add_data(std::vector<Option>& all) {
  constexpr Range kCount{1, 1024};
  add(all, kData,
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
  std::vector<Option> options{step<&StepOptions::optimizer>("optimizer", optimizer_names())};
  for (const op::RuleNumber& number : op::kRuleNumbers) {
    if (number.member != &op::OptimizerRule::weight_decay) options.push_back(number_option(number));
  }
  add(all, kOptimizer, std::move(options));
  add(all, kOptimizer,
      {step<&StepOptions::weight_decay>(
           "weight-decay",
           "Share of each value added to its gradient; adamw and lion subtract it from the value instead",
           {.range = kZeroOrMore}),
       step<&StepOptions::init_learning_rate>(
           "init-learning-rate", "Initial learning rate (default: one that suits the optimizer and the network)",
           {.role = Role::measurement}),
       step<&StepOptions::learning_rate_schedule>(
           "learning-rate-schedule",
           "constant, piecewise, exponential or cosine (default: constant; piecewise if one is given)",
           {.role = Role::measurement, .shows_default = false}),
       step<&StepOptions::piecewise_learning_rate_schedule>("piecewise-learning-rate-schedule",
                                                            "\"LR0;E1;LR1;...\": LR0 until epoch E1, then LR1, ...",
                                                            {.role = Role::measurement, .shows_default = false}),
       step<&StepOptions::num_learning_rate_warmup_epochs>("num-learning-rate-warmup-epochs",
                                                           "Epochs of linear warm-up from 0",
                                                           {.role = Role::measurement, .range = kZeroOrMore}),
       step<&StepOptions::num_epochs_per_decay>(
           "num-epochs-per-decay",
           "exponential: epochs between decays (default: 2); cosine: epochs of the whole descent (default: 90)",
           {.role = Role::measurement, .range = kAboveZero}),
       step<&StepOptions::learning_rate_decay_factor>(
           "learning-rate-decay-factor", "exponential: factor of one decay (default: 0.94)",
           {.role = Role::measurement, .range = Range{.low = 0, .high = 1, .above = true}})});
}

void add_machine(std::vector<Option>& all) {
  add(all, kMachine,
      {step<&StepOptions::device>(
           "device", "Where to compute: cpu, cuda, or cuda:N for one of several GPUs; bench compares several: cpu,cuda",
           {.label = "{}", .identity = 2}),
       step<&StepOptions::backend>("backend",
                                   "Kernels to use: onednn or reference (default: the fastest in this build)",
                                   {.shows_default = false}),
       step<&StepOptions::precision>(
           "precision",
           "fp32; bf16: activations and products in bf16, weights and sums in fp32; GPUs also "
           "have fp16 (with a scaled loss) and tf32 (10-bit factors)",
           {.names = {"fp32", "tf32", "bf16", "fp16"}, .label = "{}", .identity = 3}),
       step<&StepOptions::data_format>("data-format", "Order of activations in memory: auto, nchw or nhwc",
                                       {.names = {"auto", "nchw", "nhwc", "NCHW", "NHWC"}}),
       step<&StepOptions::autotune>("autotune",
                                    "Time the kernels for each operation and use the fastest: off, fast or full",
                                    {.names = {"off", "fast", "full"}}),
       step<&StepOptions::exact>("exact", "Exclude kernels that round more than the direct sum (Winograd)"),
       step<&StepOptions::tune_cache>("tune-cache", "File that keeps the timings (default: in the user's cache folder)",
                                      {.role = Role::measurement}),
       step<&StepOptions::recompute>("recompute",
                                     "Save memory: compute results again for backward instead of keeping them: none, "
                                     "cheap (all but convolutions) or full",
                                     {.names = {"none", "cheap", "full"}}),
       step<&StepOptions::num_intra_threads>(
           "num-intra-threads",
           "Threads of one operation, divided over the groups of --batch-split; 0: one per usable core",
           {.range = kThreads,
            .label = "{} thread|{} threads",
            .title = "threads per worker",
            .identity = 8,
            .environment = "TRIREME_NUM_INTRA_THREADS"}),  // set by a launch whose workers share cores, as the next one
       step<&StepOptions::bind>("bind", "Bind threads to cores (default), or leave them to the system",
                                {.environment = "TRIREME_BIND", .spelling = "--bind,!--no-bind"}),
       step<&StepOptions::num_inter_threads>("num-inter-threads", "Operations that run at the same time; 0: one",
                                             {.range = kThreads, .title = "operations at a time"}),
       step<&StepOptions::batch_split>("batch-split",
                                       "Groups of cores that share the images of a batch, or auto: the fastest by "
                                       "timing. The result is that of the whole batch",
                                       {.role = Role::chosen}),
       step<&StepOptions::batch_norm_over>("batch-norm-over",
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
           "hybrid:3-1 (the workers of each stage), or a JSON file with stages",
           {.label = "{}", .identity = 10}),
       workers<&DistributionOptions::micro_batches>(
           "micro-batches", "In a pipeline: equal parts of a step's images that follow each other (default: about four "
                            "per stage)",
           {.range = Range{1, 1 << 16}, .label = "{} micro-batches"}),
       workers<&DistributionOptions::schedule>(
           "schedule", "In a pipeline: order of the work in each stage; auto: 1f1b",
           {.names = {"auto", "gpipe", "1f1b", "interleaved", "zb-h1"}, .label = "{}"}),
       workers<&DistributionOptions::bucket_mb>(
           "bucket-mb", "Megabytes of gradients that are exchanged together, or auto", {.title = "bucket (MB)"}),
       workers<&DistributionOptions::overlap>("overlap", "Exchange gradients during backward: on or off",
                                              {.names = {"on", "off"}}),
       workers<&DistributionOptions::gradient_precision>(
           "gradient-precision", "Precision of gradients between machines: fp32, fp16 or bf16; sums are fp32"),
       workers<&DistributionOptions::sync_batch_norm>(
           "sync-batch-norm", "Batch norm over the images of all workers (default: each worker's own)"),
       workers<&DistributionOptions::check_replicas>("check-replicas",
                                                     "Compare the workers' variables every N steps; 0: only at the end",
                                                     {.range = Range{0, 1e9}}),
       workers<&DistributionOptions::comm_timeout>("comm-timeout",
                                                   "End the job if a worker does not answer for this many seconds",
                                                   {.role = Role::measurement, .range = kSeconds}),
       step<&StepOptions::deterministic>("deterministic",
                                         "The same bits in every run: nothing is chosen by timing (--autotune off)")});
}

void add_servers(std::vector<Option>& all) {
  add(all, kServers,
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
      {step<&StepOptions::trace_steps>("trace-steps", "Number of steps in the trace",
                                       {.role = Role::output, .range = kPositiveCount})});
  return all;
}

std::vector<Option> loop_options() {
  std::vector<Option> all;
  add(all, kTraining,
      {loop<&LoopOptions::epochs>("epochs", "Passes over the training images", {.range = kAboveZero}),
       loop<&LoopOptions::evaluate_on>("eval", "Workers that evaluate on the validation images: all, first or none",
                                       {.names = {"all", "first", "none"}}),
       loop<&LoopOptions::evaluate_every>("eval-every", "Epochs between evaluations; 0: only at the end",
                                          {.range = kZeroOrMore}),
       loop<&LoopOptions::eval_batch_size>("eval-batch-size", "Images at a time (default: --batch-size)",
                                           {.range = Range{.low = 1}}),
       loop<&LoopOptions::target_accuracy>("target-accuracy", "Stop at this share of top-1, from 0 to 1; 0: never",
                                           {.range = Range{0, 1}}),
       loop<&LoopOptions::average_decay>(
           "average", "Keep moving averages of all variables with this decay, such as 0.999, and evaluate these; 0: no",
           {.range = kShare})});
  add(all, kGradients,
      {loop<&LoopOptions::reference_batch>("scale-learning-rate",
                                           "Global batch that learning rates are meant for, such as 256; they are "
                                           "scaled to the actual one (linearly; best "
                                           "with --num-learning-rate-warmup-epochs); 0: do not scale",
                                           {.range = kZeroOrMore}),
       loop<&LoopOptions::accumulate>("accumulate", "Batches whose mean gradient makes one update",
                                      {.range = Range{1, 1 << 20}}),
       loop<&LoopOptions::clip_norm>("clip-norm", "Largest norm of all gradients together; 0: no limit",
                                     {.range = kZeroOrMore}),
       loop<&LoopOptions::lars>("lars", "Layer-wise rates for large batches, with this coefficient, such as 0.001",
                                {.range = kAboveZero}),
       loop<&LoopOptions::skip_batch_norm_decay>("skip-batch-norm-decay",
                                                 "No weight decay for scales and offsets of batch norm")});
  add(all, kCheckpoints,
      {loop<&LoopOptions::checkpoint_dir>("checkpoint-dir", "Folder for checkpoints (default: none are written)",
                                          {.shows_default = false}),
       loop<&LoopOptions::checkpoint_every>("checkpoint-every", "Steps between checkpoints; 0: one after each epoch",
                                            {.range = kZeroOrMore}),
       loop<&LoopOptions::keep_checkpoints>("keep-checkpoints", "Number of checkpoints to keep, the newest ones",
                                            {.range = Range{1, 1e9}}),
       loop<&LoopOptions::resume>("resume", "Continue from the newest checkpoint, if there is one"),
       loop<&LoopOptions::allow_other_data>("allow-other-data",
                                            "With --resume: allow another data set than the checkpoint's")});
  add(all, kOutput,
      {loop<&LoopOptions::display_every>("display-every",
                                         "Steps between points of the curves in the record and in TensorBoard",
                                         {.role = Role::measurement, .range = kPositiveCount})});
  return all;
}

std::vector<Option> timing_options() {
  std::vector<Option> all;
  add(all, kWork,
      {timing<&TimingOptions::num_batches>("num-batches", "Timed steps per repeat (default: 100, within --max-seconds)",
                                           {.role = Role::measurement, .range = kPositiveCount}),
       timing<&TimingOptions::num_warmup_batches>("num-warmup-batches", "Steps before the timed ones",
                                                  {.role = Role::measurement, .range = Range{0, 1e9}}),
       timing<&TimingOptions::repeats>("repeats",
                                       "Number of times to repeat the timed steps (default: 1; 5 with --io-overhead)",
                                       {.role = Role::measurement, .range = Range{1, 100'000}}),
       timing<&TimingOptions::max_seconds>("max-seconds",
                                           "End warm-up and timed steps after this time, warm-up after a quarter of it "
                                           "(default: 100 without --num-batches, else no limit)",
                                           {.role = Role::measurement, .range = kAboveZero}),
       timing<&TimingOptions::io_overhead>(
           "io-overhead",
           "After each repeat, also measure steps on a batch that stays in memory, and print what input costs"),
       timing<&TimingOptions::baseline>(
           "baseline", "After each repeat, also measure one worker alone and workers that exchange nothing",
           {.role = Role::measurement})});
  add(all, kOutput,
      {timing<&TimingOptions::display_every>("display-every", "Print a line every N steps",
                                             {.role = Role::measurement, .range = kPositiveCount}),
       timing<&TimingOptions::profile>("profile", "Time every instruction and print where a step goes, longest first",
                                       {.role = Role::output}),
       timing<&TimingOptions::profile_rows>("profile-rows", "Number of instructions that --profile lists",
                                            {.role = Role::output, .range = kPositiveCount})});
  return all;
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
