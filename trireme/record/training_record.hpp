// A training run as data: its epochs, its loss curve and how it ended. Written by `trireme train --record`.
#pragma once

#include "trireme/record/run_record.hpp"

namespace trireme::record {

inline constexpr const char* kTrainingSchema = "trireme.train/1";

// On validation images; nothing without them.
struct Validation {
  std::optional<double> top1, top5, validation_loss;
  std::optional<std::int64_t> validation_samples;
};

struct Epoch : Validation {
  std::optional<double> epoch, step, loss, learning_rate, images_per_second;
  double train_seconds = 0, evaluation_seconds = 0;
};

struct CurvePoint {
  std::optional<double> step, epoch, loss, learning_rate, seconds;
};

struct Resumed {
  std::string checkpoint;
  std::int64_t step = 0;
  double epoch = 0;
  std::optional<double> train_seconds;  // until the checkpoint; none: unknown
  double epoch_seconds = 0;             // of these, in the epoch of the checkpoint
};

struct NothingLeft : Validation {
  std::int64_t step = 0;
};

struct TrainingRecord {
  std::string schema = kTrainingSchema;
  std::vector<std::string> command;
  std::string started;
  Json build;
  Machine machine;
  Json config;
  std::vector<Task> cluster;
  std::optional<Pipeline> pipeline;
  std::vector<ParallelPlan> plans;
  std::vector<Epoch> epochs;
  std::vector<CurvePoint> curve;
  std::optional<Resumed> resumed;
  std::optional<NothingLeft> nothing_left;   // it was complete before
  std::string end;                           // in words; empty: it did not end
  std::optional<double> train_seconds;       // from the first step, over all runs; none: unknown
  std::optional<double> train_seconds_here;  // in this run
  std::optional<double> input_wait_seconds;
  std::int64_t bad_records = 0, bad_validation_records = 0;
  std::string checkpoint;  // the last one; empty: none
  std::optional<double> loss_scale;
  std::optional<std::int64_t> skipped_updates;
};

Json to_json(const TrainingRecord& record);
void read(const Json& json, TrainingRecord& record);

}  // namespace trireme::record
