// The options that `tune` sets, as the command line would describe them. Used by the tests of its space and search.
#pragma once

#include "trireme/config/tables.hpp"
#include "trireme/lab/study/configuration.hpp"

namespace trireme::testkit {

inline lab::OptionCatalog tune_options() {
  std::vector<const config::Option*> options;
  for (const char* name :
       {"model", "batch-size", "num-intra-threads", "num-inter-threads", "all-reduce", "bucket-mb", "forward-only",
        "device", "max-seconds", "workers", "ps", "parallel", "schedule", "micro-batches"}) {
    options.push_back(config::find_option(name));
  }
  return lab::OptionCatalog(std::move(options));
}

}  // namespace trireme::testkit
