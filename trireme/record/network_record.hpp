// A network test as data: every size, mode and transport with its samples. Written by `trireme net`.
#pragma once

#include "trireme/record/run_record.hpp"

namespace trireme::record {

inline constexpr const char* kNetworkSchema = "trireme.net/1";

struct Samples {
  double median = 0, jitter = 0, minimum = 0, p95 = 0;
  std::vector<double> samples;
};

struct Message {
  std::string mode;
  double bytes = 0, bytes_per_second = 0;
  Samples seconds;
};

struct LinkFit {
  double latency_seconds = 0, bytes_per_second = 0, residual = 0;
};

struct Pair {
  std::string transport;
  std::vector<int> ranks;
  bool same_host = false;
  LinkFit fit;
  std::vector<Message> messages;
};

struct AllReduce {
  std::string transport, algorithm;
  int ranks = 0;
  double bytes = 0, algorithm_bytes_per_second = 0, bus_bytes_per_second = 0;
  Samples seconds;
};

struct Transport {
  std::string name, carried_by;
};

struct Load {
  double threads = 0;
  int cores = 0;
};

// The buckets of a network's gradients.
struct Gradients {
  std::string name;
  std::vector<std::int64_t> bucket_bytes;
  std::vector<AllReduce> all_reduce;
};

struct NetworkRecord {
  std::string schema = kNetworkSchema;
  std::vector<std::string> command;
  std::string started;
  Json build;
  Machine machine;
  Json config;
  std::vector<Task> cluster;
  Load load;
  std::vector<Transport> transports;
  std::vector<Pair> pairs;
  std::vector<AllReduce> all_reduce;
  std::optional<Gradients> model;
};

Json to_json(const NetworkRecord& record);
void read(const Json& json, NetworkRecord& record);

}  // namespace trireme::record
