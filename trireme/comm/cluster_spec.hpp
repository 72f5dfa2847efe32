// The tasks of a networked job and the address each listens on, parsed from command-line lists, a file, or TensorFlow's
// TF_CONFIG. Made by the command line or the launcher, which passes it to its tasks as text; used by transports that
// connect by address. Every parser validates: Error(bad_input) gives the position of the mistake.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/comm/job_size.hpp"

namespace trireme::comm {

inline constexpr const char* kWorkerJob = "worker";
inline constexpr const char* kServerJob = "ps";

struct TaskPlace {  // one task: "worker 0", "ps 1"
  std::string job = kWorkerJob;
  int index = 0;

  bool is_server() const { return job == kServerJob; }
  bool operator==(const TaskPlace&) const = default;
};
std::string to_string(const TaskPlace& place);

// Addresses are host:port, IPv6 in brackets; a task's index is its position. Ranks: workers first, then servers.
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

struct ClusterDescription {  // contents of a cluster file
  ClusterSpec spec;
  std::optional<TaskPlace> task = {};
};

// {"worker": ["a:2220", ...], "ps": [...]}, or TF_CONFIG's {"cluster": {...}, "task": {"type": ..., "index": ...}}.
ClusterDescription cluster_from_json(const std::string& text, const std::string& source);
ClusterDescription read_cluster_file(const std::string& path);
std::string to_json_text(const ClusterSpec& spec);

// Checks that the task exists. Errors name the sources of job and index ("--job-name", "--task-index").
void check_place(const ClusterSpec& spec, const TaskPlace& place, const std::string& job_source,
                 const std::string& index_source);

// Checks that the host of the task's address is this machine, using name lookup and local interfaces.
void check_is_local(const ClusterSpec& spec, const TaskPlace& place);

// PEM files for TLS, all empty without it: the task's certificate, valid for the addresses of all tasks that use it;
// its key; and the authority that signed all certificates.
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
