// The text output of a tune: the search space, the model's estimates and reasons, a line per trial, what each round
// keeps and drops, and the final gain. Observes TuneSearch.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "trireme/lab/tune/tune_search.hpp"
#include "trireme/report/terminal.hpp"

namespace trireme::cli {

class TuneText : public lab::TuneObserver {
 public:
  // Lines go to `stream`, the current trial to `terminal`, if any.
  TuneText(const lab::TuneSpace& space, const lab::TuneObjective& objective, std::FILE* stream, std::FILE* terminal)
      : space_(space), objective_(objective), stream_(stream), line_(terminal) {}

  void on_round(lab::TuneRound round, const lab::StepCostModel& model, const std::vector<std::size_t>& order,
                const std::vector<double>& estimates) override;
  void on_sample(const lab::TuneSample& sample) override;
  void on_failure(const lab::TuneTrial& trial, const std::string& error) override;
  void on_round_end(const lab::RoundEnd& end, const std::vector<double>& estimates) override;
  void on_wait(const lab::TuneTrial& trial, double seconds);
  void erase_line() { line_.erase(); }

 private:
  const lab::TuneSpace& space_;
  lab::TuneObjective objective_;
  std::FILE* stream_;
  report::TerminalLine line_;
  std::size_t trials_ = 0;
};

// Workers, threads and batch of a cell, and other differences from the default: "workers=2 ... batch-size=16 ps=1".
std::string short_text(const lab::TuneSpace& space, std::size_t cell);
// The varied options and values, and the numbers of configurations and trials.
std::string introduction(const lab::TuneSpace& space, const lab::TuneObjective& objective,
                         const lab::TuneSettings& settings);
// The finals with their spread, the choice with its reason, and the gain over the default.
std::string conclusion(const lab::TuneSpace& space, const lab::TuneObjective& objective, const lab::TuneResult& result);
// "1.25 times the default (1.21 to 1.29, p = 0.029)"; "not shown: ..." if the test does not support it or there are too
// few runs; or that the default was not beaten.
std::string gain_text(const lab::TuneResult& result);

}  // namespace trireme::cli
