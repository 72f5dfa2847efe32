#include "cli/models_placement.hpp"

#include <fmt/format.h>

#include "trireme/base/units.hpp"
#include "trireme/models/model.hpp"
#include "trireme/ps/placement.hpp"
#include "trireme/report/run_record.hpp"
#include "trireme/report/table.hpp"

namespace trireme::cli {
namespace {

using report::Align;
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

// "ps 1", or of a cut variable the share of each server: "cut: 34 % 33 % 33 %".
std::string where(const ps::PlacedVariable& variable) {
  if (variable.server >= 0) return fmt::format("ps {}", variable.server);
  std::string text = "cut:";
  for (const ps::ElementRange& piece : variable.pieces) {
    text +=
        fmt::format(" {:.0f} %", 100.0 * static_cast<double>(piece.count()) / static_cast<double>(variable.elements()));
  }
  return text;
}

std::string bytes_text(std::int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

std::string variable_table(const ps::Placement& placement) {
  report::Table table({{"variable"}, {"shape", Align::right}, {"bytes", Align::right}, {"server"}});
  for (const ps::PlacedVariable& variable : placement.variables()) {
    table.add_row({variable.name, to_string(variable.shape), bytes_text(variable.bytes()), where(variable)});
  }
  return table.text();
}

std::string server_table(const ps::Placement& placement) {
  report::Table table({{"server"},
                       {"bytes", Align::right},
                       {"share", Align::right},
                       {"variables", Align::right},
                       {"pieces", Align::right}});
  for (std::size_t server = 0; server < placement.loads().size(); ++server) {
    const ps::ServerLoad& load = placement.loads()[server];
    table.add_row({fmt::format("ps {}", server), bytes_text(load.bytes()),
                   fmt::format("{:.1f} %", 100 * share_of(placement, load)), std::to_string(load.variables),
                   std::to_string(load.pieces)});
  }
  return table.text();
}

}  // namespace

void show_placement(const PlacementOptions& options) {
  const ps::Strategy strategy = ps::parse_strategy(options.strategy);
  Graph graph;
  const Model model = build_model(graph, options.model, {.batch_size = 1, .num_classes = options.num_classes});
  const ps::Placement placement(graph, strategy, options.servers);
  if (options.json) {
    fmt::print("{}\n", placement_json(model.info.name, placement).dump(2));
    return;
  }
  fmt::print("{}: {} variables on {} parameter server{}, placement {}\n\n{}\n{}\n", model.info.name,
             placement.variables().size(), placement.servers(), placement.servers() == 1 ? "" : "s",
             to_string(strategy), variable_table(placement), server_table(placement));
  fmt::print("imbalance (largest load / mean): {:.3f}\n", placement.imbalance());
}

}  // namespace trireme::cli
