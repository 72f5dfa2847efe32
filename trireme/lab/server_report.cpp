#include "trireme/lab/server_report.hpp"

#include <algorithm>

namespace trireme::lab {

Traffic traffic_of(const std::string& statistics) {
  const Json json = Json::parse(statistics);
  return {.received = json.at("bytes_received"), .sent = json.at("bytes_sent")};
}

ServerReport server_report(const std::string& statistics, const std::string& host, const Traffic& traffic,
                           std::int64_t steps) {
  const Json json = Json::parse(statistics);
  const auto per_step = [steps](std::int64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(std::max<std::int64_t>(1, steps));
  };
  return {.host = host,
          .variable_bytes = json.at("variable_bytes"),
          .bytes_received_per_step = per_step(traffic.received),
          .bytes_sent_per_step = per_step(traffic.sent),
          .updates = json.at("updates"),
          .dropped_gradients = json.at("dropped_gradients"),
          .pushes = json.at("pushes"),
          .mean_staleness = json.at("mean_staleness"),
          .max_staleness = json.at("max_staleness"),
          .max_lead = json.at("max_lead")};
}

Json to_json(const ServerReport& server) {
  return {{"host", server.host},
          {"variable_bytes", server.variable_bytes},
          {"bytes_received_per_step", server.bytes_received_per_step},
          {"bytes_sent_per_step", server.bytes_sent_per_step},
          {"updates", server.updates},
          {"dropped_gradients", server.dropped_gradients},
          {"mean_staleness", server.mean_staleness},
          {"max_staleness", server.max_staleness},
          {"max_lead", server.max_lead}};
}

}  // namespace trireme::lab
