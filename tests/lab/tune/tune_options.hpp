// The options that `tune` sets, as the command line would describe them. Used by the tests of its space and search.
#pragma once

#include "trireme/lab/study/configuration.hpp"

namespace trireme::testkit {

inline lab::OptionCatalog tune_options() {
  using lab::OptionKind;
  return lab::OptionCatalog({{"model", OptionKind::text},
                             {"batch-size", OptionKind::integer},
                             {"num-intra-threads", OptionKind::integer},
                             {"num-inter-threads", OptionKind::integer},
                             {"all-reduce", OptionKind::text},
                             {"bucket-mb", OptionKind::text},
                             {"forward-only", OptionKind::flag},
                             {"device", OptionKind::text},
                             {"max-seconds", OptionKind::number},
                             {"workers", OptionKind::integer, true},
                             {"ps", OptionKind::integer, true}});
}

}  // namespace trireme::testkit
