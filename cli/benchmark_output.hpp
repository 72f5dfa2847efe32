// The text output of a benchmark, as observers: banner, step lines, totals, and a progress bar on a terminal.
#pragma once

#include <cstdio>
#include <string>

#include "trireme/lab/bench/job_figures.hpp"
#include "trireme/report/terminal.hpp"

namespace trireme::cli {

// The lines known from tf_cnn_benchmarks, with units. Step lines appear at step 1 and every display_every.
class BenchmarkText : public lab::BenchmarkObserver {
 public:
  explicit BenchmarkText(std::FILE* stream) : stream_(stream) {}
  void on_start(const lab::BenchmarkSetup& setup) override;
  void on_step(const lab::StepEvent& event) override;
  void on_end(const lab::BenchmarkSetup& setup, const lab::BenchmarkResult& result) override;

 private:
  void print(const std::string& text);

  std::FILE* stream_;
  std::int64_t batch_size_ = 0, display_every_ = 1, repeats_ = 1;
};

// Draws a bar with the time left on a terminal, around another observer's output.
class ProgressBar : public lab::BenchmarkObserver {
 public:
  ProgressBar(lab::BenchmarkObserver& inner, std::FILE* terminal) : inner_(inner), line_(terminal) {}
  void on_start(const lab::BenchmarkSetup& setup) override;
  void on_warmup_step(const lab::StepEvent& event) override;
  void on_step(const lab::StepEvent& event) override;
  void on_end(const lab::BenchmarkSetup& setup, const lab::BenchmarkResult& result) override;

 private:
  void draw(const lab::StepEvent& event, const char* phase, std::int64_t steps_done);

  lab::BenchmarkObserver& inner_;
  report::TerminalLine line_;
  lab::BenchmarkConfig config_;
  std::int64_t warmup_done_ = 0;
  double drawn_at_ = -1;  // seconds into the run; below 0: never
};

std::string introduction(const lab::BenchmarkConfig& config);  // what is about to be measured, and for how long
std::string banner(const lab::BenchmarkSetup& setup);
std::string banner(const lab::BenchmarkSetup& setup, const std::string& steps);  // other words for the steps
std::string step_line(const lab::StepEvent& event, std::int64_t batch_size);
std::string totals(const lab::BenchmarkSetup& setup, const lab::BenchmarkResult& result);
// Share of the run that is done, 0 to 1: by steps, or by time if that ends it earlier.
double progress(const lab::BenchmarkConfig& config, double elapsed_seconds, std::int64_t steps_done);

// For workers and servers that train together.
std::string workers_text(int workers);                               // "2 workers"
std::string members_text(const std::vector<comm::Member>& members);  // "4: 2 on alpha, 2 on beta"
std::string servers_text(const lab::BenchmarkSetup& setup);
std::string update_text(const lab::BenchmarkSetup& setup);

// Time breakdown of a step per rank, gradient bandwidth, and which rank keeps the others waiting.
std::string workers_table(const lab::JobFigures& figures, const std::vector<lab::RankReport>& ranks);
// What each server holds and its traffic.
std::string servers_table(const lab::BenchmarkSetup& setup, const std::vector<record::ServerLoad>& servers);
std::string baseline_text(const lab::BenchmarkSetup& setup, const lab::BenchmarkResult& result,
                          const lab::JobFigures& figures);

}  // namespace trireme::cli
