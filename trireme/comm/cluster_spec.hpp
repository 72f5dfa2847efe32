// The tasks of a job that meet over the network, and the address at which each listens, as users write it: lists on the
// command line, a file, TensorFlow's TF_CONFIG. Made by the command line or by the launcher, which hands it to its
// tasks as text; used by the transports that join by address. Every way of making one checks it: Error(bad_input) says
// where the mistake stands.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/comm/job_size.hpp"

namespace trireme::comm {

inline constexpr const char* kWorkerJob = "worker";
inline constexpr const char* kServerJob = "ps";

// One task: "worker 0", "ps 1".
struct TaskPlace {
  std::string job = kWorkerJob;
  int index = 0;

  bool is_server() const { return job == kServerJob; }
  bool operator==(const TaskPlace&) const = default;
};
std::string to_string(const TaskPlace& place);

// Addresses are host:port, with an IPv6 host in brackets; a task's index is its position in the list. Ranks count the
// workers first, then the servers.
struct ClusterSpec {
  std::vector<std::string> workers, servers;

  int size() const { return static_cast<int>(workers.size() + servers.size()); }
  JobSize job_size() const {
    return {.workers = static_cast<int>(workers.size()), .servers = static_cast<int>(servers.size())};
  }
  int rank_of(const TaskPlace& place) const;
  TaskPlace place_of(int rank) const;
  std::string name_of(int rank) const { return to_string(place_of(rank)); }
  const std::string& address_of(const TaskPlace& place) const;
  bool operator==(const ClusterSpec&) const = default;
};

// From --worker-hosts and --ps-hosts: "a:2220,b:2220".
ClusterSpec cluster_from_lists(const std::string& worker_hosts, const std::string& ps_hosts);

// What a file may say: the cluster, and which task of it this process is.
struct ClusterDescription {
  ClusterSpec spec;
  std::optional<TaskPlace> task = {};
};

// {"worker": ["a:2220", ...], "ps": [...]}, or as TF_CONFIG has it {"cluster": {...}, "task": {"type": ..., "index":
// ...}}. The source is named in errors.
ClusterDescription cluster_from_json(const std::string& text, const std::string& source);
ClusterDescription read_cluster_file(const std::string& path);
std::string to_json_text(const ClusterSpec& spec);

// There is such a task: the source of its job and of its index are named in errors ("--job-name", "--task-index").
void check_place(const ClusterSpec& spec, const TaskPlace& place, const std::string& job_source,
                 const std::string& index_source);

// The host of a task's address is this machine, which is to listen there; asks the system's names and interfaces.
void check_is_local(const ClusterSpec& spec, const TaskPlace& place);

// PEM files, of a task that encrypts its connections: its certificate, valid for the addresses of all tasks that use
// it, the key to it, and who has signed those of all. All empty: no TLS.
struct TlsFiles {
  std::string certificate = {}, key = {}, authority = {};
  bool is_used() const { return !certificate.empty(); }
};

struct Address {
  std::string host;  // without brackets
  int port = 0;
};
Address parse_address(std::string_view text, std::string_view source);

}  // namespace trireme::comm
