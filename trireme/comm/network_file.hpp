// Measured link figures between this job's hosts, stored in a file by transport and kind of pair. Written by `trireme
// net`; read by workers (`--all-reduce auto`) and by predictions.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trireme/comm/link_fit.hpp"

namespace trireme::comm {

// Time of the measurement, and the load of the busiest host just before.
struct MeasuredWhen {
  std::string started;  // RFC 3339
  double load = 0;      // threads of other programs running or waiting for a core
  int cores = 1;
  bool operator==(const MeasuredWhen&) const = default;
};

struct KeptFit {
  LinkFit fit;
  MeasuredWhen when;
  bool contradicted = false;  // by the steps of a job
};

// Of one transport; nullopt if no such pair was measured.
struct TransportFits {
  std::optional<KeptFit> same_host, other_host;
  bool empty() const { return !same_host && !other_host; }
};
// With the age of the figures, and why they are in doubt if they are: old, of a busy host, contradicted.
std::string to_string(const TransportFits& fits, std::chrono::system_clock::time_point now);
// "it is old and a host was busy"; empty if the figures can be trusted.
std::string doubts_of(const TransportFits& fits, std::chrono::system_clock::time_point now);

using NetworkFits = std::map<std::string, TransportFits>;  // by transport

// Removes unusable fits and returns the reasons: "grpc, same host: ...".
std::vector<std::string> remove_bad(NetworkFits& fits);
// "grpc, same host", for each.
std::vector<std::string> names_of(const NetworkFits& fits);

std::string default_network_file();
bool is_network_file(const std::string& path);
NetworkFits read_network_file(const std::string& path);  // empty if missing or of another kind
// Keeps other transports' and kinds' figures; creates the folder. Concurrent tests would measure each other.
void update_network_file(const std::string& path, const NetworkFits& fits);
// Marks these figures in the file as contradicted, unless there are newer ones by now.
void mark_contradicted(const std::string& path, const std::string& transport,
                       std::optional<KeptFit> TransportFits::*kind, const MeasuredWhen& when);

std::string to_text(const NetworkFits& fits);  // as file contents, for ranks without the file
NetworkFits parse_fits(const std::string& text);

// nullopt if the transport was not measured.
std::optional<TransportFits> find_fits(const NetworkFits& fits, const std::string& transport);
CostModel cost_model(const TransportFits& fits);  // the default cost model with measured figures filled in

}  // namespace trireme::comm
