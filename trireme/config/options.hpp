// User settings, named like the command-line options and with the same defaults. Programs fill TrainingOptions,
// `trireme bench` BenchmarkOptions. tables.hpp declares the option of each member. resolve() checks and completes them
// (train/step_config.hpp, train/training_config.hpp, lab/bench/benchmark_config.hpp); its errors name the options.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trireme::train {

// The source of images.
struct DataOptions {
  std::string dir;  // empty: synthetic images
  std::optional<std::string> name;
  std::optional<std::int64_t> threads, prefetch, cache_bytes, max_bad_records;
  std::optional<std::string> crop, eval_crop, augment, mean, deviation;
  bool distortions = false;  // tf_cnn_benchmarks' name for --augment flip,colour
};

// How workers train together.
struct DistributionOptions {
  std::string variable_update = "auto";  // auto: parameter_server if there are servers, all_reduce if workers train
  std::string all_reduce = "auto";
  std::optional<std::string> network_file = {};  // nothing: the file that `trireme net` writes
  std::string bucket_mb = "auto";
  std::string gradient_precision = "fp32";
  std::string overlap = "on";
  bool sync_batch_norm = false;
  bool shard_optimizer = false;
  std::string elastic = {};  // "MIN:MAX" workers; empty: not given
  std::int64_t check_replicas = 0;
  double comm_timeout = 60;
  bool synchronous = false;  // --sync: states the default
  bool asynchronous = false;
  std::optional<std::int64_t> staleness = {};
  std::int64_t backup_workers = 0;
  std::string placement = {};  // empty: not given
  std::string parallel = "data";
  std::optional<std::int64_t> micro_batches = {};
  std::string schedule = "auto";  // 1f1b
};

// One step: network, batch, optimizer, device, kernels, threads, data and workers.
struct StepOptions {
  std::string model = "resnet50";
  std::optional<std::int64_t> batch_size;  // per worker
  std::optional<std::int64_t> num_classes;
  bool forward_only = false;
  bool aux_head = false;
  bool no_dropout = false;
  double label_smoothing = 0;

  std::string optimizer = "momentum";
  std::map<std::string, double> optimizer_numbers;  // by RuleNumber::name; missing: the optimizer's defaults
  double weight_decay = 4e-5;
  std::optional<double> init_learning_rate;
  std::string learning_rate_schedule;            // empty: piecewise if given, else constant
  std::string piecewise_learning_rate_schedule;  // "LR0;E1;LR1;..."
  double num_learning_rate_warmup_epochs = 0;
  std::optional<double> num_epochs_per_decay;
  std::optional<double> learning_rate_decay_factor;

  std::string device = "cpu";
  std::string precision = "fp32";
  std::string data_format = "auto";
  std::string backend;  // empty: the fastest in this build
  std::string autotune = "fast";
  bool exact = false;
  std::string recompute = "none";
  std::optional<double> memory_limit;     // GB per worker
  std::optional<std::string> tune_cache;  // none: a file in the user's cache folder
  std::int64_t num_intra_threads = 0;     // 0: chosen for the machine
  std::int64_t num_inter_threads = 0;
  std::string batch_split = "auto";  // or a number of core groups
  std::string batch_norm_over = "batch";
  bool bind = true;
  std::int64_t seed = 1;
  std::int64_t trace_steps = 10;
  bool deterministic = false;
  bool train_accuracy = false;
  DataOptions data;
  DistributionOptions distribution;
};

// A training run around its steps.
struct LoopOptions {
  double epochs = 1;
  std::int64_t reference_batch = 0;  // rates are scaled from this global batch to the actual one; 0: not scaled
  bool skip_batch_norm_decay = false;
  std::int64_t accumulate = 1;
  double clip_norm = 0;
  std::optional<double> lars;  // coefficient
  double average_decay = 0;
  std::string evaluate_on = "all";
  std::int64_t display_every = 10;
  std::int64_t evaluate_every = 1;
  std::optional<std::int64_t> eval_batch_size;
  double target_accuracy = 0;
  std::string checkpoint_dir;
  std::int64_t checkpoint_every = 0;
  std::int64_t keep_checkpoints = 3;
  bool resume = false;
  bool allow_other_data = false;
  std::string replay;
};

// What a run writes: paths; empty: none.
struct OutputOptions {
  std::string tensorboard, csv, trace, membership_log;
  std::string record;  // "-": stdout, and text to stderr
};

struct TrainingOptions : LoopOptions {
  StepOptions step;
};

}  // namespace trireme::train

namespace trireme::lab {

// How steps are timed.
struct TimingOptions {
  std::optional<std::int64_t> num_batches;
  std::int64_t num_warmup_batches = 10;
  std::optional<std::int64_t> repeats;
  std::int64_t display_every = 10;
  std::optional<double> max_seconds;
  bool baseline = false;
  bool io_overhead = false;
  bool profile = false;
  std::int64_t profile_rows = 30;
};

struct BenchmarkOptions : train::StepOptions, TimingOptions {
  std::vector<std::string> given = {};  // options that the user has set, by name: for the record
};

}  // namespace trireme::lab
