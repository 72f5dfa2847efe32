// `trireme models --model NAME --ps N`: how the variables of a network would be divided between parameter servers.
#pragma once

#include <cstdint>
#include <string>

namespace trireme::cli {

struct PlacementOptions {
  std::string model;
  std::int64_t num_classes = 0;  // 0: the network's own
  int servers = 0;
  std::string strategy = "round_robin";
  bool json = false;
};

void show_placement(const PlacementOptions& options);

}  // namespace trireme::cli
