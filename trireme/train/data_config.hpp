// The source of images, from resolved DataOptions. Part of StepConfig.
#pragma once

#include <cstdint>
#include <string>

#include "trireme/base/json.hpp"
#include "trireme/config/options.hpp"
#include "trireme/data/choose_preprocessing.hpp"

namespace trireme::train {

struct DataConfig {
  std::string dir;
  std::string name = "auto";  // format
  int threads = 1;            // decoder threads per worker
  int prefetch = 2;           // batches ahead
  std::int64_t cache_bytes = 0;
  std::int64_t max_bad_records = 0;
  data::PreprocessingOptions preprocessing;  // complete once the data set is open

  bool default_threads = true;  // count not given: if a GPU computes, one thread per processor of the worker

  void set_threads(bool on_gpu);
  bool is_real() const { return !dir.empty(); }
};

// Error(bad_input) names the option, the value given and what is legal.
DataConfig resolve_data(const DataOptions& options, bool forward_only = false);

void add_json(const DataConfig& config, Json& json);

}  // namespace trireme::train
