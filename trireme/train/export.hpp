// Exports a checkpoint's network for other systems: ONNX, or the values alone as safetensors. For `trireme export`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trireme/models/model.hpp"

namespace trireme::train {

struct ExportOptions {
  std::string checkpoint;  // a file, or a folder: its newest one
  std::string format;      // "onnx" or "safetensors"
  std::string out;
  std::optional<std::int64_t> batch_size = {};  // onnx; none: any
  bool average = false;                         // moving averages instead of the last values
};

struct ExportSummary {
  std::string checkpoint;  // the file
  std::int64_t step = 0;
  Network model;
  std::int64_t bytes = 0;  // written
};

// Error(bad_input) if the options, checkpoint or output path are invalid; Error(unavailable) for ONNX without protobuf.
// Writes a temporary file and renames it.
ExportSummary export_checkpoint(const ExportOptions& options);

}  // namespace trireme::train
