// A training step: StepOptions checked and completed by resolve(). Run by Worker, kept in records, filled by tests.
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

// What batch norm computes statistics over if a batch is split over core groups.
enum class BatchNormOver : std::uint8_t { batch, group };

struct StepConfig {
  StepOptions options;  // as given; what follows has been chosen, completed or parsed
  std::int64_t batch_size = 16;
  std::int64_t num_classes = 0;  // 0: the model's own
  op::OptimizerRule optimizer;
  bool decays_batch_norm = true;      // weight decay also applies to batch-norm scales and offsets
  bool learning_rate_chosen = false;  // schedule.initial was not given: the worker picks one for the network
  LearningRateSchedule schedule;
  DataFormat data_format = DataFormat::automatic;
  std::string backend = "reference";
  Autotune autotune = Autotune::off;
  Recompute recompute = Recompute::none;
  Precision precision = Precision::fp32;
  std::string tune_cache;  // file; empty: timings are not kept
  int intra_threads = 0;   // of all groups together
  int inter_threads = 0;
  int batch_split = 1;  // core groups; 0: chosen by measuring
  BatchNormOver batch_norm_over = BatchNormOver::batch;
  DataConfig data;
  DistributionConfig distribution;

  bool on_gpu() const { return options.device != "cpu"; }
  std::uint64_t seed() const { return static_cast<std::uint64_t>(options.seed); }
  std::int64_t global_batch_size() const { return batch_size * distribution.workers; }
  // Images of one run of the network: a batch, or a micro-batch of a pipeline.
  std::int64_t images_per_run() const {
    const PipelineConfig& pipeline = distribution.pipeline;
    const bool is_divided = pipeline.is_used() && !options.forward_only;  // evaluation is not
    return is_divided ? global_batch_size() / pipeline.micro_batches : batch_size;
  }
};

// Error(bad_input) names the option, the value given and what is legal.
StepConfig resolve(const StepOptions& options, const comm::JobSize& job = {});

CompileOptions compile_options(const StepConfig& config);

Json to_json(const StepConfig& config);  // keys are the option names

// Size of the data set that synthetic images stand for: ImageNet, CIFAR-10 or MNIST by image size.
std::int64_t images_per_epoch(const Network& model);
void set_epoch(StepConfig& config, std::int64_t images);  // images per epoch, the unit of schedules

// A rate at which the loss on a fixed batch, even of two images, falls from the first steps on, for every network.
double default_learning_rate(op::OptimizerKind optimizer, bool batch_norm, std::int64_t gradient_tensors);

std::string_view to_string(BatchNormOver over);

}  // namespace trireme::train
