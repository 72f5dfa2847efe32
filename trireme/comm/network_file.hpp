// What network tests have found out about the links between this job's hosts, kept in a file by transport and by kind
// of pair. Written by `trireme net`; read by workers, whose `--all-reduce auto` chooses by it, and by whoever
// predicts.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trireme/comm/link_fit.hpp"

namespace trireme::comm {

// When, and how busy the busiest host was just before.
struct MeasuredWhen {
  std::string started;  // RFC 3339
  double load = 0;      // threads of other programs that ran or waited for a core
  int cores = 1;
  bool operator==(const MeasuredWhen&) const = default;
};

struct KeptFit {
  LinkFit fit;
  MeasuredWhen when;
};

// Of one transport: nothing if no such pair was measured.
struct TransportFits {
  std::optional<KeptFit> same_host, other_host;
  bool empty() const { return !same_host && !other_host; }
};
// With the age of each at this time.
std::string to_string(const TransportFits& fits, std::chrono::system_clock::time_point now);

using NetworkFits = std::map<std::string, TransportFits>;  // by transport

// Takes out the fits that nothing should be chosen by, and says of each why: "grpc, same host: ...".
std::vector<std::string> remove_bad(NetworkFits& fits);
// "grpc, same host", for each.
std::vector<std::string> names_of(const NetworkFits& fits);

std::string default_network_file();
bool is_network_file(const std::string& path);
// A file that is not there, or is not of this kind, has no fits.
NetworkFits read_network_file(const std::string& path);
// What the file has about other transports and kinds stays. Makes the folder. Not for two tests at once: they would not
// measure the network but each other.
void update_network_file(const std::string& path, const NetworkFits& fits);

// As the text of a file, for ranks that have none.
std::string to_text(const NetworkFits& fits);
NetworkFits parse_fits(const std::string& text);

// Of one transport; nothing if none were measured.
std::optional<TransportFits> find_fits(const NetworkFits& fits, const std::string& transport);
// A cost model with the measured figures in place of the usual ones.
CostModel cost_model(const TransportFits& fits);

}  // namespace trireme::comm
