#include "trireme/train/export.hpp"

#include <algorithm>
#include <filesystem>

#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/features.hpp"
#include "trireme/onnx/model_file.hpp"
#include "trireme/train/checkpoint.hpp"
#include "trireme/train/trained_on.hpp"

namespace trireme::train {
namespace {

// Input of every format.
struct TrainedNetwork {
  const CheckpointFile& checkpoint;
  const ExportOptions& options;
  const Graph& graph;
  const Model& model;
  const VariableStore& values;
};

// How to use the network: preprocessing of images and meaning of outputs.
Metadata usage_of(const TrainingState& state, const Network& model) {
  Metadata usage{
      {"model", state.model}, {"classes", std::to_string(state.classes)}, {"step", std::to_string(state.step)}};
  const auto data = trained_on(state.others);
  if (!data) return usage;  // a checkpoint of an older version lacks it
  const data::Preprocessing preprocessing = data::preprocessing_for(
      data->images, static_cast<int>(model.image_size), static_cast<int>(model.channels), false, data->preprocessing);
  usage["preprocessing"] = data::describe(preprocessing);
  usage["crop"] = data::to_string(preprocessing.crop);
  usage["mean"] = data::to_string(data->preprocessing.mean);
  usage["std"] = data::to_string(data->preprocessing.deviation);
  if (!data->class_names.empty()) usage["class_names"] = state.others.at("class_names");
  return usage;
}

void write_onnx(const TrainedNetwork& network) {
  if constexpr (TRIREME_WITH_PROTOBUF) {
    NewFile file(network.options.out);
    file.write(onnx::to_onnx({.name = network.model.info.name,
                              .graph = network.graph,
                              .images = network.model.images,
                              .logits = network.model.logits,
                              .values = network.values,
                              .any_batch = !network.options.batch_size,
                              .metadata = usage_of(network.checkpoint.state(), network.model.info)}));
    file.commit();
  } else {
    fail(ErrorKind::unavailable,
         "this build cannot write ONNX files: build with the packages libprotobuf-dev and protobuf-compiler, or export "
         "safetensors");
  }
}

void write_weights(const TrainedNetwork& network) {
  std::vector<NamedTensor> tensors;
  for (const NodeId id : network.values.all()) {
    tensors.push_back({network.values.node(id).name, network.values.get(id)});
  }
  Metadata metadata = usage_of(network.checkpoint.state(), network.model.info);
  metadata["values"] = network.options.average ? "average" : "last";
  write_safetensors(network.options.out, tensors, metadata);
}

struct Format {
  const char* name;
  void (*write)(const TrainedNetwork& network);
};
constexpr Format kFormats[] = {{"onnx", write_onnx}, {"safetensors", write_weights}};

const Format& find_format(const ExportOptions& options) {
  const auto* found = std::ranges::find(kFormats, std::string_view(options.format), &Format::name);
  if (found == std::end(kFormats)) {
    bad_input("unknown export format '{}'; allowed: onnx, safetensors", options.format);
  }
  if (options.batch_size && found->write == write_weights) {
    bad_input("--batch-size works only with --format onnx: weights are the same for every batch size");
  }
  return *found;
}

void expect_averages(const CheckpointFile& checkpoint, const Graph& graph) {
  const auto has_average = [&](NodeId id) { return checkpoint.tensors().contains(average_name(graph.node(id))); };
  if (std::ranges::none_of(graph.variables(), has_average)) {
    bad_input("'{}' has no moving averages: it was trained without them; export it without --average",
              checkpoint.path());
  }
}

}  // namespace

ExportSummary export_checkpoint(const ExportOptions& options) {
  const Format& format = find_format(options);
  const auto checkpoint = open_checkpoint(options.checkpoint);
  check_can_make(options.out, "", "give a file in a writable folder");

  Graph graph;
  const TrainingState& state = checkpoint->state();
  const Model model =
      build_model(graph, state.model,
                  {.batch_size = options.batch_size.value_or(1), .num_classes = state.classes, .training = false});
  if (options.average) expect_averages(*checkpoint, graph);
  VariableStore values(graph, state.seed);
  checkpoint->restore_values(values, options.average);

  format.write({*checkpoint, options, graph, model, values});
  return {checkpoint->path(), state.step, model.info,
          static_cast<std::int64_t>(std::filesystem::file_size(options.out))};
}

}  // namespace trireme::train
