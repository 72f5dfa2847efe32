// What network tests have found out about the links between this job's hosts, kept in a file by transport and by kind
// of pair. Written by `trireme net`; read by benchmarks, whose `--all-reduce auto` chooses by it, and by whoever
// predicts.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/lab/network_fit.hpp"
#include "trireme/lab/network_test.hpp"

namespace trireme::lab {

// Of one transport: nothing where no such pair was measured.
struct TransportFits {
  std::optional<LinkFit> same_host, other_host;
  std::string measured;  // RFC 3339: when
  bool empty() const { return !same_host && !other_host; }
};
std::string to_string(const TransportFits& fits);

using NetworkFits = std::map<std::string, TransportFits>;  // by transport

// Medians over the pairs of each kind.
NetworkFits fits_of(std::span<const PairResult> pairs, const std::string& measured);

std::string default_network_file();
// A file that is not there, or is not of this kind, has no fits.
NetworkFits read_network_file(const std::string& path);
// What the file has about other transports and kinds stays. Makes the folder. Not for two tests at once: they would not
// measure the network but each other.
void update_network_file(const std::string& path, const NetworkFits& fits);

// As the text of a file, for ranks that have none.
std::string to_text(const NetworkFits& fits);
NetworkFits parse_fits(const std::string& text);

// Of one transport; nothing where none were measured.
std::optional<TransportFits> find_fits(const NetworkFits& fits, const std::string& transport);
// A cost model with the measured figures in place of the usual ones.
comm::CostModel cost_model(const TransportFits& fits);

}  // namespace trireme::lab
