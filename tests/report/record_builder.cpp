#include "tests/report/record_builder.hpp"

#include <fstream>

namespace trireme::report::testkit {

RecordBuilder::RecordBuilder() {
  record::RunRecord record;
  record.command = {"/usr/bin/trireme", "bench", "--model", "resnet50"};
  record.started = "2024-05-01T12:30:00Z";
  record.build = {{"version", "0.1.0"}, {"git", "abc123"}, {"compiler", "GNU 12.2.0"}};
  record.machine.host = "node1";
  record.machine.cpu = "A CPU";
  record.machine.cores = 4;
  record.machine.os = "Debian";
  record.machine.kernel = "Linux 6";
  record.config = {{"model", "resnet50"}, {"batch_size", 32},       {"workers", 1},
                   {"servers", 0},        {"num_intra_threads", 4}, {"forward_only", false}};
  record.results.images_per_second = 100.0;
  json_ = to_json(record);
  json_.erase("given");
}

RecordBuilder& RecordBuilder::given(const Json& options) {
  json_["given"] = options;
  return *this;
}

RecordBuilder& RecordBuilder::config(const std::string& name, const Json& value) {
  json_["config"][name] = value;
  return *this;
}

RecordBuilder& RecordBuilder::speed(double images_per_second, std::vector<double> per_repeat) {
  json_["results"]["images_per_second"] = images_per_second;
  json_["results"]["images_per_second_per_repeat"] = per_repeat;
  return *this;
}

RecordBuilder& RecordBuilder::gpu(const std::string& name) {
  json_["machine"]["gpu"] = {{"device", name}};
  json_["config"]["device"] = "cuda";
  return *this;
}

RecordBuilder& RecordBuilder::host(const std::string& name) {
  json_["machine"]["host"] = name;
  return *this;
}

RecordBuilder& RecordBuilder::cluster(const std::vector<std::string>& hosts) {
  json_["cluster"] = Json::array();
  for (const std::string& host : hosts) json_["cluster"].push_back({{"role", "worker"}, {"host", host}});
  return *this;
}

RecordBuilder& RecordBuilder::no_machine() {
  json_.erase("machine");
  return *this;
}

RecordBuilder& RecordBuilder::version(const std::string& name) {
  json_["build"] = {{"version", name}};
  return *this;
}

RecordBuilder& RecordBuilder::commit(const std::string& name) {
  json_["build"]["git"] = name;
  return *this;
}

RecordBuilder& RecordBuilder::study(const std::string& name, const Json& cell, int repeat, const std::string& kind) {
  json_["study"] = {{"name", name},           {"kind", kind.empty() ? Json(nullptr) : Json(kind)},
                    {"cell", cell},           {"repeat", repeat},
                    {"framework", "trireme"}, {"command", "trireme bench --model resnet50"}};
  return *this;
}

RecordBuilder& RecordBuilder::framework(const std::string& name) {
  json_["study"]["framework"] = name;
  return *this;
}

RecordBuilder& RecordBuilder::breakdown(std::vector<record::Breakdown> ranks) {
  record::RunRecord record;
  record.results.breakdown = std::move(ranks);
  json_["results"]["breakdown"] = to_json(record)["results"]["breakdown"];
  return *this;
}

RecordBuilder& RecordBuilder::io_overhead(std::vector<double> percent) {
  json_["results"]["io_overhead_percent_per_repeat"] = percent;
  return *this;
}

RecordBuilder& RecordBuilder::error(const std::string& message) {
  json_["error"] = message;
  json_["results"] = nullptr;
  return *this;
}

void add_runs(RecordSet& records, const RecordBuilder& cell, const std::vector<double>& speeds) {
  for (const double speed : speeds) records.runs.push_back(RecordBuilder(cell).speed(speed).run());
}

std::vector<double> about(double speed) { return {speed, 1.001 * speed, 0.998 * speed, 1.003 * speed, 0.997 * speed}; }

Json training_record() {
  Json record{{"schema", "trireme.train/1"},
              {"command", {"trireme", "train"}},
              {"started", "2024-05-01T12:30:00Z"},
              {"machine", {{"host", "node1"}, {"cpu", "A CPU"}, {"cores", 4}}},
              {"config", {{"model", "mnist"}}}};
  for (int step = 1; step <= 4; ++step) {
    record["curve"].push_back({{"step", step}, {"epoch", 0.5 * step}, {"loss", 2.0 / step}, {"seconds", 1.5 * step}});
  }
  for (int epoch = 1; epoch <= 2; ++epoch) {
    record["epochs"].push_back({{"epoch", epoch},
                                {"step", 2 * epoch},
                                {"loss", 1.0 / epoch},
                                {"top1", 0.4 * epoch},
                                {"images_per_second", 50},
                                {"train_seconds", 3.0},
                                {"evaluation_seconds", 0.5}});
  }
  return record;
}

Json network_record() {
  const auto message = [](const char* mode, double bytes, double seconds) {
    return Json{{"mode", mode},
                {"bytes", bytes},
                {"bytes_per_second", bytes / seconds},
                {"seconds", {{"median", seconds}, {"samples", {0.9 * seconds, seconds, 1.1 * seconds}}}}};
  };
  return {
      {"schema", "trireme.net/1"},
      {"command", {"trireme", "net"}},
      {"machine", {{"host", "node1"}, {"cpu", "A CPU"}, {"cores", 4}}},
      {"pairs",
       {{{"transport", "mpi"},
         {"ranks", {0, 1}},
         {"messages", {message("ping_pong", 8, 1e-6), message("ping_pong", 1e6, 2e-4), message("one_way", 8, 1e-7)}}}}},
      {"all_reduce",
       {{{"transport", "mpi"},
         {"algorithm", "ring"},
         {"ranks", 2},
         {"bytes", 1024},
         {"bus_bytes_per_second", 1e9},
         {"seconds", {{"samples", {1e-6, 1.1e-6}}}}}}}};
}

Training training(const std::string& file, const Json& record) {
  Training training;
  read(record, training);
  training.file = file;
  return training;
}

Network network(const std::string& file) {
  Network network;
  read(network_record(), network);
  network.file = file;
  return network;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
}

}  // namespace trireme::report::testkit
