// What people and programs see of a training run, as observers of its trainer: lines, a progress bar, a CSV file,
// TensorBoard's curves, and the record. Used by `trireme train`, on the first worker.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "trireme/base/clock.hpp"
#include "trireme/base/unique_fd.hpp"
#include "trireme/report/run_record.hpp"
#include "trireme/report/terminal.hpp"
#include "trireme/train/event_file.hpp"
#include "trireme/train/trainer.hpp"

namespace trireme::lab {

// The lines before the first step.
std::string banner(const train::Trainer& trainer);

// A line for each epoch, and, on a terminal, a bar that moves below them.
class TrainingText : public train::TrainerObserver {
 public:
  // No terminal: no bar.
  TrainingText(std::FILE* stream, std::FILE* terminal, const train::Trainer& trainer);

  void on_step(const train::StepReport& report) override;
  void on_epoch(const train::EpochReport& report) override;
  void on_nothing_left(std::int64_t step, const std::optional<train::Accuracy>& accuracy) override;
  void on_end(const train::EndReport& report) override;

 private:
  void draw(const train::StepReport& report);

  std::FILE* stream_;
  report::TerminalLine line_;
  const train::Trainer& trainer_;
  SteadyClock::time_point start_ = SteadyClock::now(), drawn_ = {};
};

// epoch,step,loss,top1,top5,validation_loss,learning_rate,images_per_second,train_seconds,evaluation_seconds: appended
// to, so that a run that goes on goes on in its file.
class TrainingCsv : public train::TrainerObserver {
 public:
  explicit TrainingCsv(const std::string& path);  // Error(bad_input) where it cannot be written
  static void check(const std::string& path);     // the same, and makes nothing
  void on_epoch(const train::EpochReport& report) override;
  // Lines that a full disk has refused so far. Error(failed) where it still does.
  void flush();

 private:
  std::string path_;
  UniqueFd file_;
  std::string waiting_;  // whole lines that are not in the file yet
};

class TrainingCurves : public train::TrainerObserver {
 public:
  // Steps in between lines are not kept.
  TrainingCurves(const std::string& folder, const train::Trainer& trainer);
  void on_step(const train::StepReport& report) override;
  void on_epoch(const train::EpochReport& report) override;
  void flush() { file_.flush(); }  // Error(failed) where points cannot be written

 private:
  void add_breakdown(const train::EpochReport& report);

  train::EventFile file_;
  const train::Trainer& trainer_;
  // Of the end of the last epoch.
  train::TrainingSeconds before_;
  std::int64_t steps_before_;
  double seconds_ = 0;  // of steps since
};

// Every epoch, the curve of the loss and, at the end, how it ended: {"schema": "trireme.train/1", "epochs": [...],
// "curve": [...], ...}. Made right before the training runs: that is when its seconds begin.
class TrainingRecord : public train::TrainerObserver {
 public:
  explicit TrainingRecord(const train::Trainer& trainer);
  // A point of the curve for displayed steps: the mean loss since the point before, so that no step is left out.
  void on_step(const train::StepReport& report) override;
  void on_epoch(const train::EpochReport& report) override;
  void on_nothing_left(std::int64_t step, const std::optional<train::Accuracy>& accuracy) override;
  void on_end(const train::EndReport& report) override;
  Json json(const train::Trainer& trainer) const;

 private:
  SteadyClock::time_point start_ = SteadyClock::now();
  std::int64_t display_every_;
  double seconds_before_;  // of training, in earlier runs
  double loss_sum_ = 0;    // since the last point
  std::int64_t steps_ = 0;
  Json json_;
};

}  // namespace trireme::lab
