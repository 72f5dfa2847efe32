// Figures of single files that are no runs of a benchmark: curves of training, bandwidths of the network.
#pragma once

#include <vector>

#include "trireme/report/figure.hpp"
#include "trireme/report/record_set.hpp"

namespace trireme::report {

// Loss over epochs and over time, and accuracy over epochs where there is some; a series for each record.
std::vector<Figure> training_figures(const std::vector<FileRecord>& records);

// Bandwidth over the size of messages between pairs, and on the bus in all-reduce; both logarithmic.
std::vector<Figure> network_figures(const std::vector<FileRecord>& records);

}  // namespace trireme::report
