// `trireme models`: the networks, the layers of one, its compiled plan, and where parameter servers would hold its
// variables.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "cli/models_stages.hpp"
#include "cli/table_options.hpp"
#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/text_table.hpp"
#include "trireme/base/units.hpp"
#include "trireme/config/tables.hpp"
#include "trireme/lab/bench/benchmark.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/plan/passes.hpp"
#include "trireme/plan/schedule.hpp"
#include "trireme/ps/placement.hpp"
#include "trireme/report/plan_table.hpp"
#include "trireme/train/step_graph.hpp"

namespace trireme::cli {
namespace {

struct ModelsOptions {
  std::string model;
  bool plan = false, json = false;
  train::StepOptions step;  // the part that the plan depends on
  int servers = 0, workers = 1;
  std::string placement = "round_robin";
  StagesRequest stages;
};

void print(const Json& json) { fmt::print("{}\n", json.dump(2)); }

// A network for the lists: one image, so that every figure is per image.
struct BuiltNetwork {
  Graph graph;
  Model model;
  ModelCounts counts;
};

std::unique_ptr<BuiltNetwork> build(const std::string& name, std::optional<std::int64_t> num_classes) {
  auto network = std::make_unique<BuiltNetwork>();
  network->model = build_model(network->graph, name, {.batch_size = 1, .num_classes = num_classes.value_or(0)});
  network->counts = count(network->graph, network->model);
  return network;
}

Json summary_json(const BuiltNetwork& network) {
  const Network& info = network.model.info;
  return {{"name", info.name},
          {"image_size", info.image_size},
          {"classes", info.classes},
          {"parameters", network.counts.parameters},
          {"gradient_tensors", network.counts.gradient_tensors},
          {"forward_macs", static_cast<std::int64_t>(network.counts.forward_macs)}};
}

void list_models(const ModelsOptions& options) {
  Json list = Json::array();
  TextTable table({{"model"},
                   {"image", Align::right},
                   {"classes", Align::right},
                   {"parameters", Align::right},
                   {"gradient tensors", Align::right},
                   {"forward GMAC/image", Align::right},
                   {"description"}});
  for (const Network& info : model_list()) {
    const auto network = build(info.name, options.step.num_classes);
    list.push_back(summary_json(*network));
    table.add_row({info.name, fmt::format("{0}x{0}x{1}", info.image_size, info.channels),
                   format_count(network->model.info.classes), format_count(network->counts.parameters),
                   format_count(network->counts.gradient_tensors),
                   fmt::format("{:.3f}", network->counts.forward_macs / 1e9), info.description});
  }
  if (options.json) return print(list);
  fmt::print("{}\n", table.text());
  for (const NetworkFamily& family : network_families()) fmt::print("{}: {}\n", family.names, family.description);
  fmt::print("\nLayers of a network: trireme models --model NAME; its plan: trireme models --model NAME --plan\n");
}

struct Layer {
  std::string name, operation;
  Shape output;  // for one image
  std::int64_t parameters = 0;
  double macs = 0;
};

Shape without_batch(const Shape& shape) {
  return shape.rank() < 2 ? shape : Shape(std::vector<std::int64_t>(shape.begin() + 1, shape.end()));
}

// As in count(): convolutions and fully connected layers; a multiply-add counts as one.
double macs_of(const Node& node) {
  if (node.as<op::Convolution>() == nullptr && node.as<op::FullyConnected>() == nullptr) return 0;
  return cost(node).flops / 2;
}

// What the logits depend on, in order. Variables count with the layer that reads them.
std::vector<Layer> layers_of(const BuiltNetwork& network) {
  const std::vector<bool> needed = needed_for({&network.model.logits, 1}, network.graph);
  std::vector<Layer> layers;
  for (const Node& node : network.graph.nodes()) {
    const bool is_value = node.as<op::Variable>() != nullptr || node.as<op::Constant>() != nullptr;
    if (!needed[node.id] || is_value) continue;
    Layer layer{node.name, label_of(node.op), without_batch(node.outputs[0].shape), 0, macs_of(node)};
    for (const Tensor& input : node.inputs) {
      const auto* variable = network.graph.node(input).as<op::Variable>();
      if (variable != nullptr && variable->trainable) layer.parameters += variable->shape.elements();
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

void show_layers(const ModelsOptions& options) {
  const auto network = build(options.model, options.step.num_classes);
  const std::vector<Layer> layers = layers_of(*network);
  Json json = summary_json(*network);
  json["layers"] = Json::array();
  TextTable table({{"layer"}, {"operation"}, {"output"}, {"parameters", Align::right}, {"MACs/image", Align::right}});
  for (const Layer& layer : layers) {
    json["layers"].push_back({{"name", layer.name},
                              {"operation", layer.operation},
                              {"output_shape", layer.output.dims()},
                              {"parameters", layer.parameters},
                              {"forward_macs", static_cast<std::int64_t>(layer.macs)}});
    table.add_row({layer.name, layer.operation, to_string(layer.output),
                   layer.parameters > 0 ? format_count(layer.parameters) : "",
                   layer.macs > 0 ? format_count(layer.macs) : ""});
  }
  if (options.json) return print(json);
  table.add_rule();
  table.add_row({"total", fmt::format("{} operations", layers.size()), "", format_count(network->counts.parameters),
                 format_count(network->counts.forward_macs)});
  const Network& info = network->model.info;
  fmt::print("{}: {}\n{} classes, {} gradient tensors\n\n{}", info.name, info.description, format_count(info.classes),
             network->counts.gradient_tensors, table.text());
}

Json tensors_json(const Program& program, const std::vector<int>& buffers) {
  Json tensors = Json::array();
  for (const int id : buffers) {
    const TensorDesc& desc = program.buffers[id].desc;
    tensors.push_back({{"shape", desc.shape.dims()}, {"type", to_string(desc.dtype)}, {"layout", desc.layout.name()}});
  }
  return tensors;
}

Json plan_json(const Program& program, const train::StepConfig& config) {
  Json instructions = Json::array();
  for (const Instruction& instruction : program.instructions) {
    instructions.push_back({{"name", instruction.name},
                            {"operation", instruction.operation},
                            {"kernel", instruction.implementation},
                            {"inputs", tensors_json(program, instruction.inputs)},
                            {"outputs", tensors_json(program, instruction.outputs)},
                            {"bytes", instruction.cost.bytes},
                            {"flops", instruction.cost.flops},
                            {"when_variables_change", instruction.once}});
  }
  const MemorySummary& memory = program.memory;
  return {{"model", config.options.model},
          {"backend", program.backend},
          {"batch_size", config.batch_size},
          {"forward_only", config.options.forward_only},
          {"flops", program.flops()},
          {"memory",
           {{"planned_bytes", memory.planned_bytes},
            {"unplanned_bytes", memory.unplanned_bytes},
            {"peak_live_bytes", memory.peak_live_bytes},
            {"scratch_bytes", memory.scratch_bytes},
            {"variable_bytes", memory.variable_bytes},
            {"gradient_bytes", memory.gradient_bytes},
            {"optimizer_bytes", memory.optimizer_bytes}}},
          {"recomputation",
           {{"nodes", program.recomputation.nodes},
            {"extra_flops_share", program.recomputation.extra_flops},
            {"extra_bytes_share", program.recomputation.extra_bytes},
            {"planned_bytes_without", program.recomputation.planned_bytes_without}}},
          {"instructions", std::move(instructions)}};
}

// Compiles without allocating the plan's memory.
void show_plan(const ModelsOptions& options) {
  train::StepOptions step_options = options.step;
  step_options.model = options.model;
  if (options.servers > 0) step_options.distribution.placement = options.placement;
  const train::StepConfig config = resolve(step_options, {.workers = options.workers, .servers = options.servers});

  const TuningOptions tuning = train::tuning_options(config, perf::read_machine());
  if (options.stages.stages > 0) return show_stages(config, options.stages, tuning, options.json);
  Graph graph;
  const train::StepGraph step = build_step(graph, config);
  const auto backend = make_backend(config.backend, tuning);
  VariableLayouts layouts;
  CompileOptions compiling = compile_options(config);
  GradientOptions gradients;
  if (config.distribution.uses_servers()) {
    gradients.exchange = Exchange::serve;
    compiling.owners = ps::Placement(graph, config.distribution.placement, options.servers).owners();
  } else if (options.workers > 1 && !config.options.forward_only) {
    gradients.exchange = config.distribution.shard_optimizer ? Exchange::shard : Exchange::reduce;
  }
  if (gradients.exchange != Exchange::none) {
    compiling.update_bytes = bucket_bytes_for(config.distribution, train::trainable_bytes(graph));
  }
  compiling.owners = divide_by_rule(graph, compiling.owners);
  const Program program = compile(graph, step.fetches, *backend, compiling, layouts);
  if (const std::string problem = train::keep_timings(*tuning.cache); !problem.empty()) {
    log_line("warning: " + problem);
  }
  if (options.json) return print(plan_json(program, config));
  fmt::print("{}, {}, batch size {} per worker, backend {}, {}, data format {}\n\n{}", config.options.model,
             config.options.forward_only ? "forward only" : "training", config.batch_size, program.backend,
             to_string(config.precision), to_string(config.data_format), report::describe(program));
  if (gradients.exchange == Exchange::none) return;
  const RunPlace place{.on_host = backend->device().is_host()};
  fmt::print("\n{}", report::describe(program, schedule_run(program, gradients, place, false)));
}

double share_of(const ps::Placement& placement, const ps::ServerLoad& load) {
  std::int64_t total = 0;
  for (const ps::PlacedVariable& variable : placement.variables()) total += variable.elements();
  return static_cast<double>(load.elements) / static_cast<double>(total);
}

Json variable_json(const ps::PlacedVariable& variable) {
  Json json{{"name", variable.name}, {"shape", variable.shape.dims()}, {"bytes", variable.bytes()}};
  if (variable.server >= 0) {
    json["server"] = variable.server;
    return json;
  }
  json["pieces"] = Json::array();
  for (std::size_t server = 0; server < variable.pieces.size(); ++server) {
    const ps::ElementRange& piece = variable.pieces[server];
    if (piece.count() > 0) json["pieces"].push_back({{"server", server}, {"begin", piece.begin}, {"end", piece.end}});
  }
  return json;
}

Json placement_json(const std::string& model, const ps::Placement& placement) {
  Json variables = Json::array(), servers = Json::array();
  for (const ps::PlacedVariable& variable : placement.variables()) variables.push_back(variable_json(variable));
  for (const ps::ServerLoad& load : placement.loads()) {
    servers.push_back({{"bytes", load.bytes()},
                       {"elements", load.elements},
                       {"variables", load.variables},
                       {"pieces", load.pieces},
                       {"share", share_of(placement, load)}});
  }
  return {{"model", model},
          {"placement", to_string(placement.strategy())},
          {"imbalance", placement.imbalance()},
          {"servers", std::move(servers)},
          {"variables", std::move(variables)}};
}

// "ps 1", or for a split variable each server's share: "cut: 34 % 33 % 33 %".
std::string where(const ps::PlacedVariable& variable) {
  if (variable.server >= 0) return fmt::format("ps {}", variable.server);
  std::string text = "cut:";
  for (const ps::ElementRange& piece : variable.pieces) {
    text +=
        fmt::format(" {:.0f} %", 100.0 * static_cast<double>(piece.count()) / static_cast<double>(variable.elements()));
  }
  return text;
}

std::string variable_table(const ps::Placement& placement) {
  TextTable table({{"variable"}, {"shape", Align::right}, {"bytes", Align::right}, {"server"}});
  for (const ps::PlacedVariable& variable : placement.variables()) {
    table.add_row({variable.name, to_string(variable.shape), format_bytes(variable.bytes()), where(variable)});
  }
  return table.text();
}

std::string server_table(const ps::Placement& placement) {
  TextTable table({{"server"},
                   {"bytes", Align::right},
                   {"share", Align::right},
                   {"variables", Align::right},
                   {"pieces", Align::right}});
  for (std::size_t server = 0; server < placement.loads().size(); ++server) {
    const ps::ServerLoad& load = placement.loads()[server];
    table.add_row({fmt::format("ps {}", server), format_bytes(load.bytes()),
                   fmt::format("{:.1f} %", 100 * share_of(placement, load)), std::to_string(load.variables),
                   std::to_string(load.pieces)});
  }
  return table.text();
}

void show_placement(const ModelsOptions& options) {
  const ps::Strategy strategy = ps::parse_strategy(options.placement);
  const auto network = build(options.model, options.step.num_classes);
  const std::string& name = network->model.info.name;
  const ps::Placement placement(network->graph, strategy, options.servers);
  if (options.json) return print(placement_json(name, placement));
  fmt::print("{}: {} variables on {} parameter server{}, placement {}\n\n{}\n{}\n", name, placement.variables().size(),
             placement.servers(), placement.servers() == 1 ? "" : "s", to_string(strategy), variable_table(placement),
             server_table(placement));
  fmt::print("imbalance (largest load / mean): {:.3f}\n", placement.imbalance());
}

int run(const ModelsOptions& options) {
  config::step_table().check(options.step);
  if (options.plan) {
    show_plan(options);
  } else if (options.servers > 0) {
    show_placement(options);
  } else if (!options.model.empty()) {
    show_layers(options);
  } else {
    list_models(options);
  }
  return 0;
}

}  // namespace

Command add_models(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("models", "List the networks, their parameters, flops and layers");
  auto options = std::make_shared<ModelsOptions>();
  train::StepOptions& step = options->step;
  CLI::Option* model = app->add_option("--model", options->model, "Show the layers of this network");
  CLI::Option* plan = app->add_flag("--plan", options->plan, "Show the plan it is compiled to instead")->needs(model);
  CLI::Option* servers =
      app->add_option("--ps", options->servers, "Show how its variables would be placed on N parameter servers")
          ->needs(model)
          ->check(whole_number(1, 4096));
  app->add_option("--workers", options->workers,
                  "With --plan: show the step of one of N workers, and when gradients are sent")
      ->needs(plan)
      ->check(whole_number(1, 1 << 20));
  StagesRequest& stages = options->stages;
  CLI::Option* pipeline =
      app->add_option("--stages", stages.stages, "With --plan: cut the network into N stages of a pipeline")
          ->needs(plan)
          ->check(whole_number(1, 1 << 10));
  app->add_option("--micro-batches", stages.micro_batches, "Parts of the step's images that follow each other")
      ->needs(pipeline)
      ->check(whole_number(1, 1 << 16))
      ->capture_default_str();
  app->add_option("--schedule", stages.schedule, "gpipe, 1f1b, interleaved or zb-h1")
      ->needs(pipeline)
      ->capture_default_str();
  app->add_option("--placement", options->placement,
                  "round_robin: in order of creation; greedy: to the server with the fewest bytes so far; split: large "
                  "variables in one piece per server")
      ->needs(servers)
      ->capture_default_str();
  step.autotune = "off";
  const auto add = [&](const char* name) {
    return add_option(*app, config::step_table(), name, step)->group("Options");
  };
  add("num-classes");
  for (const char* name : {"batch-size", "forward-only", "data-format", "precision", "backend", "optimizer",
                           "recompute", "shard-optimizer"}) {
    add(name)->needs(plan);
  }
  app->add_flag("--json", options->json, "Machine-readable");
  for (const char* name : {"autotune", "exact", "tune-cache"}) add(name)->group("Kernels of the plan");
  return {app, [options] { return run(*options); }};
}

}  // namespace trireme::cli
