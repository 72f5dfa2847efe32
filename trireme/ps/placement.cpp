#include "trireme/ps/placement.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "trireme/base/error.hpp"
#include "trireme/base/parse.hpp"

namespace trireme::ps {
namespace {

constexpr Names<Strategy, 3> kStrategies{{
    {Strategy::round_robin, "round_robin"},
    {Strategy::greedy, "greedy"},
    {Strategy::split, "split"},
}};

// `split` cuts variables above this share of a server's load; loads of the others, placed greedily, differ no more.
constexpr double kLargeShare = 0.01;
// Smaller pieces on average are not worth a message: 4 KB.
constexpr std::int64_t kSmallestPiece = 1024;

// The server that the device names, if any. "" and "/job:ps/cpu:0" leave it to the strategy.
std::optional<int> named_server(const std::string& variable, const Device& device, int servers) {
  const auto refuse = [&](const std::string& reason) {
    bad_input("variable '{}' is placed on {}: {}", variable, to_string(device), reason);
  };
  if (device.job == Device::Job::worker) {
    refuse("trained variables are stored on parameter servers; use /job:ps or omit the job");
  }
  if (device.processor && device.processor->kind == Device::Kind::gpu) {
    refuse("parameter servers do not use GPUs; use /cpu:0 or omit the device");
  }
  if (device.processor && device.processor->index != 0) refuse("a parameter server has one CPU device, /cpu:0");
  if (!device.task) return std::nullopt;
  if (!device.job) refuse(fmt::format("a task needs a job; use /job:ps/task:{}", *device.task));
  if (*device.task >= servers) {
    refuse(fmt::format("there is no task {} among {} parameter server{}; tasks count from 0", *device.task, servers,
                       servers == 1 ? "" : "s"));
  }
  return device.task;
}

int least_loaded(const std::vector<ServerLoad>& loads) {
  const auto least = std::ranges::min_element(loads, {}, &ServerLoad::elements);
  return static_cast<int>(least - loads.begin());
}

// The level up to which this many elements fill the emptiest servers.
double fill_level(const std::vector<ServerLoad>& loads, std::int64_t elements) {
  std::vector<std::int64_t> sorted;
  for (const ServerLoad& load : loads) sorted.push_back(load.elements);
  std::ranges::sort(sorted);
  std::int64_t sum = elements;
  for (std::size_t filled = 1;; ++filled) {
    sum += sorted[filled - 1];
    const double level = static_cast<double>(sum) / static_cast<double>(filled);
    if (filled == sorted.size() || level <= static_cast<double>(sorted[filled])) return level;
  }
}

// The nearest allowed start of a piece; a rest of less than a line joins the last piece.
std::int64_t aligned_cut(double position, std::int64_t end) {
  const std::int64_t cut = std::llround(position / kCutAlignment) * kCutAlignment;
  return end - cut < kCutAlignment ? end : cut;
}

}  // namespace

std::string_view to_string(Strategy strategy) { return name_of(strategy, kStrategies); }

Strategy parse_strategy(std::string_view name) { return parse_name(name, kStrategies, "placement"); }

Placement::Placement(const Graph& graph, Strategy strategy, int servers) : strategy_(strategy) {
  if (servers < 1) bad_input("variables cannot be placed on {} parameter servers; 1 or more are needed", servers);
  loads_.resize(servers);
  std::vector<std::size_t> free;  // without a named server
  for (const NodeId id : graph.variables()) {
    const Node& node = graph.node(id);
    const auto& variable = *node.as<op::Variable>();
    if (!variable.trainable) continue;
    variables_.push_back({.node = id, .name = node.name, .shape = variable.shape, .pieces = {}});
    if (const std::optional<int> server = named_server(node.name, variable.device, servers)) {
      assign(variables_.back(), *server);
    } else {
      free.push_back(variables_.size() - 1);
    }
  }
  if (variables_.empty()) bad_input("the graph has no trainable variable to place on parameter servers");
  place_by_strategy(free);
}

void Placement::place_by_strategy(const std::vector<std::size_t>& free) {
  if (strategy_ == Strategy::round_robin) {
    for (std::size_t i = 0; i < free.size(); ++i) {
      assign(variables_[free[i]], static_cast<int>(i % loads_.size()));
    }
    return;
  }
  std::int64_t total = 0;
  for (const PlacedVariable& variable : variables_) total += variable.elements();
  const auto is_large = [&](const PlacedVariable& variable) {
    const double even_load = static_cast<double>(total) / servers();
    return strategy_ == Strategy::split && servers() > 1 && variable.elements() >= kSmallestPiece * servers() &&
           static_cast<double>(variable.elements()) > kLargeShare * even_load;
  };
  // Large ones last: cuts level what the small ones leave uneven.
  for (const std::size_t i : free) {
    if (!is_large(variables_[i])) assign(variables_[i], least_loaded(loads_));
  }
  for (const std::size_t i : free) {
    if (is_large(variables_[i])) cut(variables_[i]);
  }
}

void Placement::assign(PlacedVariable& variable, int server) {
  variable.server = server;
  ServerLoad& load = loads_[server];
  load.elements += variable.elements();
  ++load.variables;
}

void Placement::cut(PlacedVariable& variable) {
  const double level = fill_level(loads_, variable.elements());
  double position = 0;
  std::int64_t begin = 0;
  for (ServerLoad& load : loads_) {
    position += std::max(0.0, level - static_cast<double>(load.elements));
    const std::int64_t end = aligned_cut(position, variable.elements());
    variable.pieces.push_back({begin, end});
    load.elements += end - begin;
    load.pieces += end > begin ? 1 : 0;
    begin = end;
  }
}

double Placement::imbalance() const {
  std::int64_t total = 0, largest = 0;
  for (const ServerLoad& load : loads_) {
    total += load.elements;
    largest = std::max(largest, load.elements);
  }
  return static_cast<double>(largest) * servers() / static_cast<double>(total);
}

std::vector<ElementRange> Placement::cuts(std::size_t variable, std::int64_t stored_elements) const {
  const PlacedVariable& placed = variables_[variable];
  const double stretch = static_cast<double>(stored_elements) / static_cast<double>(placed.elements());
  std::vector<ElementRange> ranges;
  std::int64_t begin = 0;
  for (int server = 0; server < servers(); ++server) {
    std::int64_t end = server < placed.server ? 0 : stored_elements;
    if (placed.server < 0) {
      const auto piece_end = static_cast<double>(placed.pieces[server].end);
      end = aligned_cut(piece_end * stretch, stored_elements);
    }
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

VariableOwners Placement::owners() const {
  VariableOwners owners;
  int next_cut = static_cast<int>(loads().size());
  for (const PlacedVariable& variable : variables()) {
    owners[variable.node] = variable.server >= 0 ? variable.server : next_cut++;
  }
  return owners;
}

}  // namespace trireme::ps
