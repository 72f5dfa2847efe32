#include "cli/training_output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/benchmark_output.hpp"
#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/base/unique_fd.hpp"
#include "trireme/base/units.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/task_runner.hpp"
#include "trireme/lab/study/duration.hpp"
#include "trireme/record/training_record.hpp"
#include "trireme/report/terminal.hpp"
#include "trireme/train/event_file.hpp"
#include "trireme/train/facts.hpp"
#include "trireme/train/trainer.hpp"
#include "trireme/train/training_config.hpp"
#include "trireme/train/worker.hpp"

namespace trireme::cli {
namespace {

constexpr double kEpochRedrawSeconds = 0.1;
constexpr int kEpochBarWidth = 24;

std::string evaluation_text(const train::Trainer& trainer) {
  if (trainer.evaluated_samples() == 0) return "none";
  return fmt::format(
      "{} images, {}, {}", format_count(trainer.evaluated_samples()),
      trainer.config().evaluates() == train::EvaluateOn::all ? "shared by all workers" : "by the first worker",
      trainer.evaluation_preprocessing());
}

std::string accuracy_text(const std::optional<train::Accuracy>& accuracy) {
  if (!accuracy) return "";
  std::string text =
      fmt::format("  top-1 {:.2f} %  top-5 {:.2f} %", 100 * accuracy->top1_share(), 100 * accuracy->top5_share());
  if (accuracy->broken > 0)
    text += fmt::format(" ({} images, {} broken left out)", accuracy->samples, accuracy->broken);
  return text;
}

// Where the run resumed; empty: it started anew.
std::string resumed_text(const train::Trainer& trainer) {
  if (trainer.resumed_from().empty()) return "";
  return fmt::format("resumed at step {} (epoch {:.2f}) from {}", trainer.first_step(), trainer.first_epoch(),
                     trainer.resumed_from());
}

void set(record::Validation& validation, const std::optional<train::Accuracy>& accuracy) {
  if (!accuracy) return;
  validation = {accuracy->top1_share(), accuracy->top5_share(), accuracy->mean_loss(), accuracy->samples};
}

std::string_view to_string(train::TrainingEnd end) {
  constexpr std::array<std::string_view, 3> kTexts{"done", "reached the accuracy asked for", "interrupted"};
  return kTexts.at(static_cast<std::size_t>(end));
}

std::string training_banner(const train::Trainer& trainer) {
  const train::TrainingConfig& config = trainer.config();
  std::string steps =
      fmt::format("{:g} epoch{} of {} images, {} per update", config.epochs, config.epochs == 1 ? "" : "s",
                  format_count(trainer.samples()), config.samples_per_update());
  if (const std::string resumed = resumed_text(trainer); !resumed.empty()) steps += "; " + resumed;
  std::string text = banner(lab::setup_of(trainer.worker()), steps);
  if (const std::int64_t unknown = trainer.unknown_steps(); unknown > 0) {
    text += fmt::format(
        "Warning: the checkpoint lacks the losses of {} step{} of this epoch; the epoch's mean loss leaves them out\n",
        unknown, unknown == 1 ? "" : "s");
  }
  text += fmt::format("Evaluation: {}; checkpoints: {}\n\n", evaluation_text(trainer),
                      config.checkpoint_dir.empty() ? "none" : config.checkpoint_dir);
  return text;
}

// A line per epoch and, on a terminal, a bar below them.
class TrainingText : public train::TrainerObserver {
 public:
  // Null terminal: no bar.
  TrainingText(std::FILE* stream, std::FILE* terminal, const train::Trainer& trainer)
      : stream_(stream), line_(terminal), trainer_(trainer) {
    std::fputs(training_banner(trainer).c_str(), stream_);
    std::fflush(stream_);
  }

  void on_step(const train::StepReport& report) override {
    if (line_.has_terminal()) draw(report);
  }
  void on_epoch(const train::EpochReport& report) override {
    line_.erase();
    fmt::print(stream_, "epoch {:3}  step {:6}  loss {:.4f}{}  rate {:.5g}  {:.1f} images/s  {:.1f} s + {:.1f} s\n",
               report.epoch, report.step, report.loss, accuracy_text(report.accuracy), report.learning_rate,
               report.images_per_second, report.train_seconds, report.evaluation_seconds);
    std::fflush(stream_);
  }
  void on_nothing_left(std::int64_t step, const std::optional<train::Accuracy>& accuracy) override {
    const double epochs = trainer_.config().epochs;
    fmt::print(stream_, "nothing left to do: {:g} {} complete after step {}{}\n", epochs,
               epochs == 1 ? "epoch was" : "epochs were", step, accuracy_text(accuracy));
    std::fflush(stream_);
  }
  void on_end(const train::EndReport& report) override {
    line_.erase();
    fmt::print(stream_, "{}; waited for input: {}\n", to_string(report.end),
               format_seconds(trainer_.seconds().input_wait));
    if (const std::string resumed = resumed_text(trainer_); !resumed.empty()) {
      fmt::print(stream_, "{}; {} of training in this run, {} in total\n", resumed,
                 format_seconds(report.train_seconds_here),
                 report.train_seconds ? format_seconds(*report.train_seconds) : "an unknown time");
    }
    if (const auto loss_scale = trainer_.loss_scale()) {
      fmt::print(stream_, "loss scale: {:g}, {} updates skipped\n", loss_scale->scale, loss_scale->skipped_updates);
    }
    std::fflush(stream_);
  }

 private:
  void draw(const train::StepReport& report) {
    const auto now = SteadyClock::now();
    if (line_.is_drawn() && std::chrono::duration<double>(now - drawn_).count() < kEpochRedrawSeconds) return;
    const double elapsed = seconds_since(start_);
    const auto steps_here = static_cast<double>(report.step - trainer_.first_step());
    const double left = elapsed / steps_here * static_cast<double>(report.steps - report.step);
    const double done = static_cast<double>(report.step) / static_cast<double>(report.steps);
    const int filled = static_cast<int>(std::lround(done * kEpochBarWidth));
    const double speed = static_cast<double>(trainer_.config().samples_per_update()) / report.seconds;
    line_.draw(fmt::format("[{}{}] epoch {:.2f}  loss {:.4f}  {:.0f} images/s  {}", std::string(filled, '#'),
                           std::string(kEpochBarWidth - filled, '.'), report.epoch, report.loss, speed,
                           lab::time_left_text(left)));
    drawn_ = now;
  }

  std::FILE* stream_;
  report::TerminalLine line_;
  const train::Trainer& trainer_;
  SteadyClock::time_point start_ = SteadyClock::now(), drawn_ = {};
};

// epoch,step,loss,top1,top5,validation_loss,learning_rate,images_per_second,train_seconds,evaluation_seconds. Appends,
// so that a resumed run continues its file.
class TrainingCsv : public train::TrainerObserver {
 public:
  // Error(bad_input) if it cannot be written.
  explicit TrainingCsv(const std::string& path)
      : path_(path), file_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
    struct stat status {};
    if (!file_.is_open() || fstat(file_.get(), &status) != 0) {
      bad_input("--csv {}: cannot write: {}", path, std::strerror(errno));
    }
    if (status.st_size == 0) {
      waiting_ =
          "epoch,step,loss,top1,top5,validation_loss,learning_rate,images_per_second,train_seconds,evaluation_"
          "seconds\n";
    }
  }
  // Same error; creates nothing.
  static void check(const std::string& path) {
    constexpr const char* kAdvice = "give a file in an existing, writable folder";
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) bad_input("--csv {}: is a folder; {}", path, kAdvice);
    if (access(path.c_str(), W_OK) == 0) return;
    if (errno != ENOENT) bad_input("--csv {}: cannot write: {}; {}", path, std::strerror(errno), kAdvice);
    check_can_make(path, "--csv: ", kAdvice);
  }
  void on_epoch(const train::EpochReport& report) override {
    const auto number = [&](double (train::Accuracy::*of)() const) {
      return report.accuracy ? fmt::format("{}", ((*report.accuracy).*of)()) : std::string();
    };
    waiting_ += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", report.epoch, report.step, report.loss,
                            number(&train::Accuracy::top1_share), number(&train::Accuracy::top5_share),
                            number(&train::Accuracy::mean_loss), report.learning_rate, report.images_per_second,
                            report.train_seconds, report.evaluation_seconds);
    flush();
  }
  // Lines a full disk refused; Error(failed) if it still does.
  void flush() {
    append_whole(file_.get(), std::as_bytes(std::span(waiting_)), path_);
    waiting_.clear();
  }

 private:
  std::string path_;
  UniqueFd file_;
  std::string waiting_;  // complete lines not yet in the file
};

class TrainingCurves : public train::TrainerObserver {
 public:
  // Keeps only displayed steps.
  TrainingCurves(const std::string& folder, const train::Trainer& trainer)
      : file_(folder), trainer_(trainer), steps_before_(trainer.first_step()) {}
  void on_step(const train::StepReport& report) override {
    seconds_ += report.seconds;
    if (!lab::is_displayed(report.step, trainer_.config().display_every)) return;
    const auto samples = static_cast<double>(trainer_.config().samples_per_update());
    file_.add("loss", report.step, static_cast<float>(report.loss));
    file_.add("learning_rate", report.step, static_cast<float>(report.learning_rate));
    file_.add("images_per_second", report.step, static_cast<float>(samples / report.seconds));
  }
  void on_epoch(const train::EpochReport& report) override {
    if (report.accuracy) {
      file_.add("accuracy/top-1", report.step, static_cast<float>(report.accuracy->top1_share()));
      file_.add("accuracy/top-5", report.step, static_cast<float>(report.accuracy->top5_share()));
      file_.add("validation_loss", report.step, static_cast<float>(report.accuracy->mean_loss()));
    }
    file_.add("epoch_seconds/training", report.step, static_cast<float>(report.train_seconds));
    file_.add("epoch_seconds/evaluation", report.step, static_cast<float>(report.evaluation_seconds));
    add_breakdown(report);
    file_.flush();
  }
  void flush() { file_.flush(); }  // Error(failed) if points cannot be written

 private:
  // Time breakdown of a step on this worker: means over the epoch's steps in this run.
  void add_breakdown(const train::EpochReport& report) {
    const train::TrainingSeconds now = trainer_.seconds();
    const auto steps = static_cast<double>(report.step - steps_before_);
    const auto add = [&](const char* name, double seconds) {
      file_.add(fmt::format("breakdown/{}", name), report.step, static_cast<float>(seconds / steps));
    };
    const double input_wait = now.input_wait - before_.input_wait, exposed = now.exposed - before_.exposed,
                 update = now.update - before_.update;
    add("compute", seconds_ - input_wait - exposed - update);
    add("input_wait", input_wait);
    if (trainer_.worker().setup().members.size() > 1) {
      add("communication", now.communication - before_.communication);
      add("exposed_communication", exposed);
      add("optimizer", update);
    }
    before_ = now;
    steps_before_ = report.step;
    seconds_ = 0;
  }

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
  explicit TrainingRecord(const train::Trainer& trainer)
      : display_every_(trainer.config().display_every),
        seconds_before_(trainer.first().train_seconds.value_or(0)),
        record_(train::begin_record<record::TrainingRecord>()) {
    record_.config = to_json(trainer.config());
    if (trainer.resumed_from().empty()) return;
    const train::TrainingProgress& first = trainer.first();
    record_.resumed = {.checkpoint = trainer.resumed_from(),
                       .step = first.step,
                       .epoch = trainer.first_epoch(),
                       .train_seconds = first.train_seconds,
                       .epoch_seconds = first.epoch.seconds};
  }
  // Displayed steps add a point to the curve: the mean loss since the last point, so that every step counts.
  void on_step(const train::StepReport& report) override {
    loss_sum_ += report.loss;
    ++steps_;
    if (!lab::is_displayed(report.step, display_every_)) return;
    record_.curve.push_back({.step = static_cast<double>(report.step),
                             .epoch = report.epoch,
                             .loss = loss_sum_ / static_cast<double>(steps_),
                             .learning_rate = report.learning_rate,
                             .seconds = seconds_before_ + seconds_since(start_)});
    loss_sum_ = 0;
    steps_ = 0;
  }
  void on_epoch(const train::EpochReport& report) override {
    record::Epoch& epoch = record_.epochs.emplace_back();
    epoch.epoch = static_cast<double>(report.epoch);
    epoch.step = static_cast<double>(report.step);
    epoch.loss = report.loss;
    epoch.learning_rate = report.learning_rate;
    epoch.images_per_second = report.images_per_second;
    epoch.train_seconds = report.train_seconds;
    epoch.evaluation_seconds = report.evaluation_seconds;
    set(epoch, report.accuracy);
  }
  void on_nothing_left(std::int64_t step, const std::optional<train::Accuracy>& accuracy) override {
    record_.nothing_left.emplace().step = step;
    set(*record_.nothing_left, accuracy);
  }
  void on_end(const train::EndReport& report) override {
    record_.end = to_string(report.end);
    record_.train_seconds_here = report.train_seconds_here;
    record_.train_seconds = report.train_seconds;
  }
  Json json(const train::Trainer& trainer) const {
    record::TrainingRecord record = record_;
    record.input_wait_seconds = trainer.seconds().input_wait;
    record.bad_records = trainer.bad_records();
    record.bad_validation_records = trainer.bad_validation_records();
    record.checkpoint = trainer.last_checkpoint();
    if (const auto loss_scale = trainer.loss_scale()) {
      record.loss_scale = loss_scale->scale;
      record.skipped_updates = loss_scale->skipped_updates;
    }
    record.pipeline = pipeline_of(trainer.worker().setup(), trainer.worker().config());
    record.plans = plans_of(trainer.worker().setup(), trainer.worker().config());
    for (const comm::Member& member : trainer.worker().setup().members) {
      record.cluster.push_back({.index = member.world_rank, .host = member.host});
    }
    return to_json(record);
  }

 private:
  SteadyClock::time_point start_ = SteadyClock::now();
  std::int64_t display_every_;
  double seconds_before_;  // of training, in earlier runs
  double loss_sum_ = 0;    // since the last point
  std::int64_t steps_ = 0;
  record::TrainingRecord record_;
};

}  // namespace

void check(const train::OutputOptions& files) {
  cluster::check_record_path(files.record);
  if (!files.csv.empty()) TrainingCsv::check(files.csv);
  if (!files.tensorboard.empty()) train::EventFile::check(files.tensorboard);
}

TrainOutcome run_with_output(train::Trainer& trainer, const train::OutputOptions& files, const std::stop_token& stop) {
  std::FILE* text_stream = files.record == "-" ? stderr : stdout;
  TrainingText text(text_stream, cluster::shows_progress() ? stderr : nullptr, trainer);
  TrainingRecord record(trainer);
  std::vector<train::TrainerObserver*> observers{&text, &record};
  std::optional<TrainingCsv> csv;
  std::optional<TrainingCurves> curves;
  if (!files.csv.empty()) observers.push_back(&csv.emplace(files.csv));
  if (!files.tensorboard.empty()) {
    observers.push_back(&curves.emplace(files.tensorboard, trainer));
  }
  TrainOutcome outcome{.end = trainer.run(observers, stop)};
  // On a full disk a smaller file may still fit: try each, and report all failures.
  const auto attempt = [&outcome](const std::function<void()>& write) {
    try {
      write();
    } catch (const std::exception& error) {
      outcome.problems.emplace_back(error.what());
    }
  };
  if (const std::string& problem = trainer.checkpoint_problem(); !problem.empty()) {
    outcome.problems.push_back("the last checkpoint could not be written: " + problem);
  }
  if (!files.record.empty()) attempt([&] { cluster::write_record(record.json(trainer), files.record); });
  if (csv) attempt([&] { csv->flush(); });
  if (curves) attempt([&] { curves->flush(); });
  if (const std::string path = trainer.last_checkpoint(); !path.empty()) {
    attempt([&] { fmt::print(text_stream, "checkpoint: {}\n", path); });
  }
  if (const auto bad = trainer.bad_records(); bad > 0) {
    attempt([&] {
      fmt::print(text_stream, "bad records: {} skipped, {} of them validation images\n", bad,
                 trainer.bad_validation_records());
    });
  }
  return outcome;
}

}  // namespace trireme::cli
