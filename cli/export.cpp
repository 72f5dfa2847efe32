// `trireme export`: writes a trained network for other systems.
#include "trireme/train/export.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "trireme/base/units.hpp"

namespace trireme::cli {
namespace {

int run(const train::ExportOptions& options) {
  const train::ExportSummary summary = train::export_checkpoint(options);
  fmt::print("{}: {} with {} classes, step {}, from {}\n", options.out, summary.model.name, summary.model.classes,
             summary.step, summary.checkpoint);
  if (options.format == "onnx") {
    const std::string batch = options.batch_size ? std::to_string(*options.batch_size) : "batch";
    fmt::print("images: {0} x {1} x {2} x {2}, logits: {0} x {3}, ", batch, summary.model.channels,
               summary.model.image_size, summary.model.classes);
  }
  fmt::print("{}\n", format_bytes(summary.bytes));
  return 0;
}

}  // namespace

Command add_export(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("export", "Export a trained network for other systems, as ONNX or as weights only");
  auto options = std::make_shared<train::ExportOptions>();
  app->add_option("--checkpoint", options->checkpoint, "Checkpoint file, or a folder to use its newest one")
      ->required();
  app->add_option("--format", options->format, "onnx: the network for inference; safetensors: its weights")->required();
  app->add_option("--out", options->out, "File to write")->required();
  app->add_option("--batch-size", options->batch_size, "onnx: fixed batch size (default: any)")
      ->check(whole_number(1, 1 << 20));
  app->add_flag("--average", options->average,
                "Export the moving averages of the weights instead of their last values");
  return {app, [options] { return run(*options); }};
}

}  // namespace trireme::cli
