// Summaries of samples, as in tf_cnn_benchmarks and the run record.
#pragma once

#include <span>

namespace trireme::perf {

// p95 interpolates between the nearest samples; stddev divides by n − 1 and is 0 for one sample.
struct Summary {
  double mean = 0, median = 0, p95 = 0, stddev = 0, stderr_mean = 0, minimum = 0, maximum = 0;
};
Summary summarize(std::span<const double> samples);  // none: all zero
double median(std::span<const double> samples);
double jitter(std::span<const double> samples);  // 1.4826 · median |x − median|

}  // namespace trireme::perf
