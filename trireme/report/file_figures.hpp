// Figures of single files that are not benchmark runs: training curves, network bandwidths.
#pragma once

#include <vector>

#include "trireme/report/figure.hpp"
#include "trireme/report/record_set.hpp"

namespace trireme::report {

// Loss over epochs and over time, and accuracy over epochs if known; a series per record.
std::vector<Figure> training_figures(const std::vector<Training>& records);

// Bandwidth over message size between pairs, and bus bandwidth of all-reduce; both axes logarithmic.
std::vector<Figure> network_figures(const std::vector<Network>& records);

}  // namespace trireme::report
