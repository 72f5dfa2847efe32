// Summaries of samples, as tf_cnn_benchmarks' users know them and as the run record has them.
#pragma once

#include <span>

namespace trireme::perf {

// p95 is interpolated between the nearest samples; stddev has n − 1 below the line and is 0 for one sample.
struct Summary {
  double mean = 0, median = 0, p95 = 0, stddev = 0, stderr_mean = 0, minimum = 0, maximum = 0;
};
Summary summarize(std::span<const double> samples);  // none: all zero
double median(std::span<const double> samples);
// 1.4826 · median |x − median|
double jitter(std::span<const double> samples);

}  // namespace trireme::perf
