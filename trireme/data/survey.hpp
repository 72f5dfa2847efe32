// Reads a data set through and says what is in it, and what is broken. What `trireme data inspect` and `verify` print.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "trireme/data/class_names.hpp"
#include "trireme/data/dataset.hpp"

namespace trireme::data {

struct SurveyOptions {
  std::int64_t most_samples = 0;  // taken at random; 0: all
  bool decode = false;            // JPEG images whole, not only their headers
  int threads = 1;
  std::stop_token stop = {};
  std::function<void(std::int64_t done, std::int64_t all)> on_progress = {};  // on any thread
};

struct Survey {
  std::int64_t samples = 0;  // that were read, broken ones included
  std::int64_t bytes = 0;    // of encoded images
  std::int64_t boxes = 0;
  std::map<std::int32_t, std::int64_t> labels;             // how many of each
  ClassTexts texts;                                        // what samples call them, where they do
  std::map<std::pair<int, int>, std::int64_t> dimensions;  // width and height: how many of each
  std::map<std::int64_t, std::string> problems;            // by the number of the sample, with file and place
};

Survey survey(const Dataset& dataset, const SurveyOptions& options);

}  // namespace trireme::data
