// A trained network for other systems, from a checkpoint: its inference graph with values (ONNX), or its values alone
// (safetensors). Used by `trireme export`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trireme/models/model.hpp"

namespace trireme::train {

struct ExportOptions {
  std::string checkpoint;  // a file, or a folder: the newest one in it
  std::string format;      // "onnx" or "safetensors"
  std::string out;
  std::optional<std::int64_t> batch_size = {};  // onnx; none: any
  bool average = false;                         // the moving averages of variables instead of their last values
};

struct ExportSummary {
  std::string checkpoint;  // the file
  std::int64_t step = 0;
  Network model;
  std::int64_t bytes = 0;  // written
};

// Error(bad_input) where the options, the checkpoint or the place to write to cannot be; Error(unavailable) for ONNX in
// a build without protobuf. The file is written aside and renamed.
ExportSummary export_checkpoint(const ExportOptions& options);

}  // namespace trireme::train
