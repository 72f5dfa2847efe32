// What a step of training is: StepOptions as resolve() has checked and completed them. A Worker runs it and records
// keep it; tests fill one directly.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trireme/backend/tuner.hpp"
#include "trireme/base/json.hpp"
#include "trireme/models/model.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/optim/schedule.hpp"
#include "trireme/plan/program.hpp"
#include "trireme/train/data_config.hpp"
#include "trireme/train/distribution.hpp"

namespace trireme::train {

// What batch norm takes its statistics over where a batch is split over groups of cores.
enum class BatchNormOver : std::uint8_t { batch, group };

struct StepConfig {
  std::string model = "resnet50";
  std::int64_t batch_size = 16;
  std::int64_t num_classes = 0;  // 0: the model's own
  bool forward_only = false;
  bool aux_head = false;
  bool dropout = true;
  float label_smoothing = 0;
  op::OptimizerRule optimizer;
  bool decays_batch_norm = true;      // weight decay applies to scales and offsets of batch norm too
  bool learning_rate_chosen = false;  // schedule.initial was not asked for: the worker takes one that suits the network
  LearningRateSchedule schedule;
  DataFormat data_format = DataFormat::automatic;
  std::string backend = "reference";
  Autotune autotune = Autotune::off;
  bool exact = false;
  Recompute recompute = Recompute::none;
  std::string device = "cpu";  // or cuda, cuda:1
  bool on_gpu() const { return device != "cpu"; }
  Precision precision = Precision::fp32;
  std::string tune_cache;  // file; empty: nothing is kept
  int intra_threads = 0;   // of all groups together
  int inter_threads = 0;
  int batch_split = 1;  // groups of cores; 0: chosen by measuring
  BatchNormOver batch_norm_over = BatchNormOver::batch;
  bool bind = true;
  std::uint64_t seed = 1;
  std::int64_t trace_steps = 10;  // that leave spans, where there is a recorder
  bool train_accuracy = false;    // of each batch, as the step sees it
  DataConfig data;
  DistributionConfig distribution;

  std::int64_t global_batch_size() const { return batch_size * distribution.workers; }
};

// Throws Error(bad_input) that names the option, what was given and what is legal.
StepConfig resolve(const StepOptions& options, const comm::JobSize& job = {});

CompileOptions compile_options(const StepConfig& config);

// Under the names of the options.
Json to_json(const StepConfig& config);

// Images in the data set that the synthetic images stand for: ImageNet, CIFAR-10 or MNIST by the size of an image.
std::int64_t images_per_epoch(const Network& model);
// Schedules count in epochs of so many images.
void set_epoch(StepConfig& config, std::int64_t images);

// A rate at which the loss of a fixed batch, even of two images, falls from the first steps on, for every network.
double default_learning_rate(op::OptimizerKind optimizer, bool batch_norm, std::int64_t gradient_tensors);

std::string_view to_string(BatchNormOver over);

}  // namespace trireme::train
