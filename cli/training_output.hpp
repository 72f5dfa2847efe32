// The output of a training run, as observers of its trainer: lines, a progress bar, a CSV file, TensorBoard curves, and
// the record. Used by `trireme train`, on the first worker.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "trireme/base/clock.hpp"
#include "trireme/base/unique_fd.hpp"
#include "trireme/record/training_record.hpp"
#include "trireme/report/terminal.hpp"
#include "trireme/train/event_file.hpp"
#include "trireme/train/trainer.hpp"

namespace trireme::cli {

std::string banner(const train::Trainer& trainer);

// A line per epoch and, on a terminal, a bar below them.
class TrainingText : public train::TrainerObserver {
 public:
  TrainingText(std::FILE* stream, std::FILE* terminal, const train::Trainer& trainer);  // null terminal: no bar

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

// epoch,step,loss,top1,top5,validation_loss,learning_rate,images_per_second,train_seconds,evaluation_seconds. Appends,
// so that a resumed run continues its file.
class TrainingCsv : public train::TrainerObserver {
 public:
  explicit TrainingCsv(const std::string& path);  // Error(bad_input) if it cannot be written
  static void check(const std::string& path);     // same error; creates nothing
  void on_epoch(const train::EpochReport& report) override;
  void flush();  // lines a full disk refused; Error(failed) if it still does

 private:
  std::string path_;
  UniqueFd file_;
  std::string waiting_;  // complete lines not yet in the file
};

class TrainingCurves : public train::TrainerObserver {
 public:
  TrainingCurves(const std::string& folder, const train::Trainer& trainer);  // keeps only displayed steps
  void on_step(const train::StepReport& report) override;
  void on_epoch(const train::EpochReport& report) override;
  void flush() { file_.flush(); }  // Error(failed) if points cannot be written

 private:
  void add_breakdown(const train::EpochReport& report);

  train::EventFile file_;
  const train::Trainer& trainer_;
  // At the end of the last epoch.
  train::TrainingSeconds before_;
  std::int64_t steps_before_;
  double seconds_ = 0;  // of steps since
};

// All epochs, the loss curve and how it ended.
// Make it right before the training runs: its clock starts then.
class TrainingRecord : public train::TrainerObserver {
 public:
  explicit TrainingRecord(const train::Trainer& trainer);
  // Displayed steps add a point to the curve: the mean loss since the last point, so that every step counts.
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
  record::TrainingRecord record_;
};

}  // namespace trireme::cli
