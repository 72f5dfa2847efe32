// The names of algorithms and wire forms, as they are given on the command line.
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "trireme/base/error.hpp"
#include "trireme/comm/all_reducer.hpp"

namespace trireme::comm {
namespace {

constexpr std::array<std::pair<Algorithm, std::string_view>, 6> kAlgorithms{{
    {Algorithm::automatic, "auto"},
    {Algorithm::library, "library"},
    {Algorithm::ring, "ring"},
    {Algorithm::halving_doubling, "halving_doubling"},
    {Algorithm::tree, "tree"},
    {Algorithm::hierarchical, "hierarchical"},
}};

constexpr std::array<std::pair<Wire, std::string_view>, 3> kWires{{
    {Wire::fp32, "fp32"},
    {Wire::fp16, "fp16"},
    {Wire::bf16, "bf16"},
}};

template <typename Names>
auto parse(const Names& names, std::string_view what, std::string_view name) {
  std::vector<std::string_view> allowed;
  for (const auto& [value, text] : names) {
    if (text == name) return value;
    allowed.push_back(text);
  }
  bad_input("unknown {} '{}'; there are: {}", what, name, fmt::join(allowed, ", "));
}

template <typename Names, typename Value>
std::string name_in(const Names& names, Value value) {
  for (const auto& [named, text] : names) {
    if (named == value) return std::string(text);
  }
  return "unknown";
}

}  // namespace

Algorithm parse_algorithm(std::string_view name) { return parse(kAlgorithms, "all-reduce algorithm", name); }
std::string to_string(Algorithm algorithm) { return name_in(kAlgorithms, algorithm); }
Wire parse_wire(std::string_view name) { return parse(kWires, "wire format", name); }
std::string to_string(Wire wire) { return name_in(kWires, wire); }

}  // namespace trireme::comm
