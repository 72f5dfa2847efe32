// Reads a whole data set and reports its content and defects, for `trireme data inspect` and `verify`.
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
  std::int64_t most_samples = 0;  // random ones; 0: all
  bool decode = false;            // whole JPEG images, not only headers
  int threads = 1;
  std::stop_token stop = {};
  std::function<void(std::int64_t done, std::int64_t all)> on_progress = {};  // from any thread
};

struct Survey {
  std::int64_t samples = 0;  // read, including broken ones
  std::int64_t bytes = 0;    // of encoded images
  std::int64_t boxes = 0;
  std::map<std::int32_t, std::int64_t> labels;             // count of each
  ClassTexts texts;                                        // the samples' own names, if any
  std::map<std::pair<int, int>, std::int64_t> dimensions;  // width and height: count of each
  std::map<std::int64_t, std::string> problems;            // by sample index, with file and place
};

Survey survey(const Dataset& dataset, const SurveyOptions& options);

}  // namespace trireme::data
