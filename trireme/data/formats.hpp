// The formats of data sets: which one a folder has, opening it, and writing one. Used by `trireme bench`, `train`,
// `eval` and `data`.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "trireme/data/dataset.hpp"

namespace trireme::data {

enum class Split : std::uint8_t { train, validation };

struct OpenOptions {
  std::string name = "auto";  // format: "tfrecord", "folder", "idx", "cifar10", or what the folder looks like
  Split split = Split::train;
};

// Error(bad_input) that says what was looked for in the folder and what is there, where it is none of the formats.
std::shared_ptr<const Dataset> open_dataset(const std::string& folder, const OpenOptions& options);

}  // namespace trireme::data
