#include "cli/bench_options.hpp"

#include <fmt/format.h>

#include <array>

namespace trireme::cli {
namespace {

constexpr const char* kWork = "Work";
constexpr const char* kData = "Data";
constexpr const char* kMachine = "Machine";

void add_step(CLI::App& app, train::StepOptions& options, const std::string& batch_size_help) {
  const OptionGroup group(app, kWork);
  app.add_option("--model", options.model, "Network to run; `trireme models` lists them")->capture_default_str();
  app.add_option("--batch-size", options.batch_size, batch_size_help);
  app.add_option("--seed", options.seed, "Of initial values, synthetic data, the order of samples and dropout")
      ->capture_default_str();
}

void add_work(CLI::App& app, lab::BenchmarkOptions& options) {
  const OptionGroup group(app, kWork);
  add_step(app, options,
           "Images per worker and step (default: the network's own; 16 at most with neither\n"
           "--num-batches nor --max-seconds)");
  app.add_option("--num-batches", options.num_batches, "Timed steps per repeat (default: 100, within --max-seconds)");
  app.add_option("--num-warmup-batches", options.num_warmup_batches, "Steps before the timed ones")
      ->capture_default_str();
  app.add_option("--repeats", options.repeats,
                 "How often the timed steps are measured (default: 1; 5 with --io-overhead)");
  app.add_option("--max-seconds", options.max_seconds,
                 "End warm-up and timed steps after this time, warm-up after a quarter of it\n"
                 "(default: 100 if --num-batches is not given, else no limit)");
  app.add_flag("--forward-only", options.forward_only, "Run the network for inference instead of training it");
  app.add_flag("--io-overhead", options.io_overhead,
               "After each repeat also measure steps on a batch that stays in place, and print what input costs");
  app.add_flag("--baseline", options.baseline,
               "After each repeat also measure one worker alone and workers that exchange nothing");
}

void add_network(CLI::App& app, train::StepOptions& options) {
  const OptionGroup group(app, "Network");
  app.add_option("--num-classes", options.num_classes, "Classes (default: the network's own)");
  app.add_option("--label-smoothing", options.label_smoothing, "Share of the target spread over all classes")
      ->capture_default_str();
  app.add_flag("--aux-head", options.aux_head, "With the auxiliary head (inception3)");
  app.add_flag("--no-dropout", options.no_dropout, "Leave dropout out");
}

// For every command that reads images.
void add_reading(CLI::App& app, train::DataOptions& options, const std::string& data_dir_help) {
  app.add_option("--data-dir", options.dir, data_dir_help);
  app.add_option("--data-name", options.name,
                 "Its format: tfrecord, folder, idx, cifar10, or auto: what the folder looks like (default)");
  app.add_option("--data-threads", options.threads,
                 "Threads of each worker that read and decode (default: 1; where a GPU computes, one per core)");
  app.add_option("--prefetch", options.prefetch, "Batches that may be ready ahead (default: 2)");
  app.add_option("--max-bad-records", options.max_bad_records,
                 "Broken records that each worker passes over, naming them (default: 0)");
  app.add_option("--mean", options.mean,
                 "Taken off each pixel's value, from 0 to 255: one number, or red,green,blue (default: 127.5)");
  app.add_option("--std", options.deviation, "What the values are divided by then (default: 127.5)");
}

void add_data(CLI::App& app, train::DataOptions& options) {
  const OptionGroup group(app, kData);
  add_reading(app, options, "Data set to train on (default: synthetic images)");
  app.add_option("--data-cache", options.cache_bytes, "Bytes of files that are kept in memory (default: 0)");
  app.add_option("--crop", options.crop,
                 "Part of an image that is taken: none (all of it), random (as for photographs), padded (as for\n"
                 "CIFAR-10) or centre (default: as suits the size of the images and of the network)");
  app.add_option("--augment", options.augment,
                 "Changes at random: none, or some of flip and colour (brightness, saturation, hue, contrast) with\n"
                 "commas (default: flip; none for small grey images)");
  app.add_flag("--distortions", options.distortions, "The same as --augment flip,colour");
}

void add_optimizer(CLI::App& app, train::StepOptions& options) {
  const OptionGroup group(app, "Optimizer");
  app.add_option("--optimizer", options.optimizer, optimizer_names())->capture_default_str();
  for (const op::RuleNumber& number : op::kRuleNumbers) {
    if (number.member == &op::OptimizerRule::weight_decay) continue;
    const auto set = [&options, name = number.name](double value) {
      options.optimizer_numbers[std::string(name)] = value;
    };
    app.add_option_function<double>("--" + option_name(number), set, number_help(number));
  }
  app.add_option("--weight-decay", options.weight_decay,
                 "Share of each value added to its gradient; adamw and lion take it off the value itself")
      ->capture_default_str();
  app.add_option("--init-learning-rate", options.init_learning_rate,
                 "First learning rate (default: one that suits optimizer and network)");
  app.add_option("--learning-rate-schedule", options.learning_rate_schedule,
                 "constant, piecewise, exponential or cosine (default: constant, or piecewise if\n"
                 "there is one)");
  app.add_option("--piecewise-learning-rate-schedule", options.piecewise_learning_rate_schedule,
                 "\"LR0;E1;LR1;...\": LR0 until epoch E1, then LR1, ...");
  app.add_option("--num-learning-rate-warmup-epochs", options.num_learning_rate_warmup_epochs,
                 "Epochs of linear warm-up from 0")
      ->capture_default_str();
  app.add_option("--num-epochs-per-decay", options.num_epochs_per_decay,
                 "Exponential: epochs between decays (default: 2); cosine: epochs of the whole\n"
                 "descent (default: 90)");
  app.add_option("--learning-rate-decay-factor", options.learning_rate_decay_factor,
                 "Exponential: factor of one decay (default: 0.94)");
}

}  // namespace

void add_tuning_options(CLI::App& app, train::StepOptions& options) {
  app.add_option("--autotune", options.autotune,
                 "Time the kernels there are for each operation and take the fastest: off, fast or full")
      ->capture_default_str();
  app.add_flag("--exact", options.exact, "Leave out kernels that round more than the direct sum (Winograd)");
  app.add_option("--tune-cache", options.tune_cache,
                 "File that keeps the timings (default: in the user's cache folder)");
}

CLI::Option* add_recompute_option(CLI::App& app, train::StepOptions& options) {
  return app
      .add_option("--recompute", options.recompute,
                  "Less memory for more time: what backward computes again instead of keeping\n"
                  "it: none, cheap (all but convolutions) or full")
      ->capture_default_str();
}

void add_trace_options(CLI::App& app, std::string& path, train::StepOptions& options) {
  app.add_option("--trace,--trace-file", path,
                 "Write what every rank did when to this file, for ui.perfetto.dev and `trireme report --trace`");
  app.add_option("--trace-steps", options.trace_steps, "Steps that --trace shows")->capture_default_str();
}

namespace {

void add_device(CLI::App& app, train::StepOptions& options, const std::string& more_help) {
  app.add_option("--device", options.device,
                 "Where to compute: cpu, cuda, or cuda:N for one GPU of several" + more_help)
      ->capture_default_str();
  app.add_option("--backend", options.backend,
                 "Who computes: onednn or reference (default: the fastest of this build)");
}

void add_threads(CLI::App& app, train::StepOptions& options, const std::string& help) {
  app.add_option("--num-intra-threads", options.num_intra_threads, help)
      ->capture_default_str()
      ->envname("TRIREME_NUM_INTRA_THREADS");  // set by a launch whose workers share cores, like the one below
  app.add_flag("--bind,!--no-bind", options.bind, "Bind threads to cores (default), or leave them to the system")
      ->envname("TRIREME_BIND");
}

void add_machine(CLI::App& app, train::StepOptions& options) {
  const OptionGroup group(app, kMachine);
  add_device(app, options, ";\nseveral with commas: one after the other, and how they compare");
  app.add_option(
         "--precision", options.precision,
         "fp32; bf16: activations and products in bf16, weights\nand sums in fp32; on GPUs also fp16: the same in fp16 "
         "with\na scaled loss, and tf32: products of 10 bits")
      ->capture_default_str();
  app.add_option("--data-format", options.data_format, "Order of activations in memory: auto, nchw or nhwc")
      ->capture_default_str();
  add_tuning_options(app, options);
  add_recompute_option(app, options);
  add_threads(app, options,
              "Threads of one operation, divided over the groups of --batch-split; 0: one per usable core");
  app.add_option("--num-inter-threads", options.num_inter_threads, "Operations at the same time; 0: one")
      ->capture_default_str();
  app.add_option("--batch-split", options.batch_split,
                 "Groups of cores that share the images of a batch, or auto: the fastest by timing. The result is\n"
                 "that of the whole batch")
      ->capture_default_str();
  app.add_option("--batch-norm-over", options.batch_norm_over,
                 "With a split batch, images that batch norm takes its statistics over: the whole batch, or each\n"
                 "group's own, as several processes would: batch or group")
      ->capture_default_str();
}

void add_workers(CLI::App& app, train::StepOptions& bench) {
  const OptionGroup group(app, "Workers");
  train::DistributionOptions& options = bench.distribution;
  app.add_option("--variable-update", options.variable_update,
                 "How workers (see `trireme launch`) agree on the variables: all_reduce, parameter_server,\n"
                 "distributed_replicated, independent (they exchange nothing), or auto: parameter_server where there\n"
                 "are servers, all_reduce where several train")
      ->capture_default_str();
  app.add_option(
         "--all-reduce", options.all_reduce,
         "How gradients are summed: auto (by size and topology), library (MPI's own), ring,\n"
         "halving_doubling, tree, hierarchical (shared memory inside a node), nccl (from GPU to GPU: what auto\n"
         "takes where each worker has a GPU of its own)")
      ->capture_default_str();
  app.add_option("--network-file", options.network_file,
                 "Figures by which --all-reduce auto chooses, as `trireme net` has measured them (default: the\n"
                 "file in the user's cache folder, where there is one)");
  app.add_option("--bucket-mb", options.bucket_mb, "Gradients of so many megabytes are exchanged together, or auto")
      ->capture_default_str();
  app.add_option("--overlap", options.overlap, "Exchange gradients while backward goes on: on or off")
      ->capture_default_str();
  app.add_option("--gradient-precision", options.gradient_precision,
                 "Of gradients between machines: fp32, fp16 or bf16; sums are fp32")
      ->capture_default_str();
  app.add_flag("--sync-batch-norm", options.sync_batch_norm,
               "Batch norm over the images of all workers (default: of each worker's own)");
  app.add_option("--check-replicas", options.check_replicas,
                 "Compare the workers' variables after every so many steps; 0: at the end only")
      ->capture_default_str();
  app.add_option("--comm-timeout", options.comm_timeout, "Seconds without an answer from a worker that end the job")
      ->capture_default_str();
  app.add_flag("--deterministic", bench.deterministic,
               "The same bits in every run: nothing is chosen by timing (--autotune off)");
}

void add_servers(CLI::App& app, train::DistributionOptions& options) {
  const OptionGroup group(app, "Parameter servers");
  app.add_flag("--sync", options.synchronous, "One update with the mean of all workers' gradients (default)");
  app.add_flag("--async", options.asynchronous, "Servers apply the gradients of each worker as they come");
  app.add_option("--staleness", options.staleness,
                 "Asynchronous, but no worker gets more than so many steps ahead of the slowest");
  app.add_option("--backup-workers", options.backup_workers,
                 "Synchronous, without waiting for the last so many workers in each step")
      ->capture_default_str();
  app.add_option("--placement", options.placement,
                 "Which server has which variable: round_robin (in order of creation), greedy (by bytes) or\n"
                 "split (large ones cut, so that servers carry the same; default)");
}

void add_output(CLI::App& app, BenchArguments& arguments) {
  const OptionGroup group(app, "Output");
  lab::BenchmarkOptions& options = arguments.options;
  app.add_option("--display-every", options.display_every, "A line every so many steps")->capture_default_str();
  app.add_flag("--profile", options.profile, "Time every instruction and print where a step goes, worst first");
  app.add_option("--profile-rows", options.profile_rows, "Instructions that --profile lists")->capture_default_str();
  app.add_option("--record", arguments.record,
                 "Write the run record (JSON) to this file; -: stdout, and text to stderr");
  add_trace_options(app, arguments.trace, options);
}

// tf_cnn_benchmarks options that this build cannot honor: declared so that the error says why.
void add_refused(CLI::App& app, BenchArguments& arguments) {
  struct Refused {
    const char *name, *reason;
  };
  constexpr std::array kRefused{
      Refused{"--server-protocol", "say --protocol"},
      Refused{"--use-fp16", "say --precision fp16"},
  };
  for (const auto& [name, reason] : kRefused) {
    app.add_option_function<std::string>(name,
                                         [&arguments, name = name, reason = reason](const std::string&) {
                                           arguments.refused = fmt::format("{}: {}", name, reason);
                                         })
        ->expected(0, 1)
        ->group("");  // hidden from help
  }
}

}  // namespace

void add_training_step_options(CLI::App& app, train::StepOptions& options) {
  add_step(app, options, "Images per worker and step (default: the network's own)");
  add_network(app, options);
  add_data(app, options.data);
  add_optimizer(app, options);
  add_machine(app, options);
  add_workers(app, options);
  add_servers(app, options.distribution);
}

void add_evaluation_options(CLI::App& app, train::StepOptions& options) {
  const OptionGroup data(app, kData);
  add_reading(app, options.data, "Data set; its validation images are taken");
  app.get_option("--data-dir")->required();
  app.add_option("--crop", options.data.crop, "none or centre (default: as the checkpoint says)");
  app.get_option("--mean")->description(
      "Taken off each pixel's value, from 0 to 255 (default: as the checkpoint says)");
  app.get_option("--std")->description("What the values are divided by then (default: as the checkpoint says)");
  const OptionGroup machine(app, kMachine);
  add_device(app, options, "");
  add_threads(app, options, "Threads of one operation; 0: one per usable core");
  add_tuning_options(app, options);
}

void add_bench_options(CLI::App& app, BenchArguments& arguments) {
  add_work(app, arguments.options);
  add_network(app, arguments.options);
  add_data(app, arguments.options.data);
  add_optimizer(app, arguments.options);
  add_machine(app, arguments.options);
  add_workers(app, arguments.options);
  add_servers(app, arguments.options.distribution);
  add_cluster_options(app, arguments.cluster);
  add_output(app, arguments);
  add_refused(app, arguments);
}

LaunchNeeds training_needs(const ClusterArguments& arguments, const train::DistributionConfig& distribution) {
  LaunchNeeds needs{.protocol = protocol_in_launch(arguments), .needs_first_worker = true};
  needs.survives_lost_workers = distribution.survives_lost_workers() && !needs.talks_mpi();
  return needs;
}

}  // namespace trireme::cli
