// Texts of a tune: the search space, a configuration, and the final gain.
#pragma once

#include <string>
#include <vector>

#include "trireme/lab/tune/tune_search.hpp"

namespace trireme::cli {

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
