#include "trireme/lab/network_file.hpp"

#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "trireme/base/cache_folder.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/report/run_record.hpp"

namespace trireme::lab {
namespace {

using report::Json;

constexpr const char* kSchema = "trireme.network/1";

Json fit_json(const LinkFit& fit) {
  return {{"latency_seconds", fit.cost.latency_seconds},
          {"bytes_per_second", fit.cost.bytes_per_second},
          {"residual", fit.residual}};
}

std::optional<LinkFit> parse_fit(const Json& json, const char* kind) {
  if (!json.contains(kind) || !json[kind].is_object()) return std::nullopt;
  const auto number = [&](const char* key) {
    const Json value = json[kind].value(key, Json());
    return value.is_number() ? value.get<double>() : -1.0;
  };
  LinkFit fit{.cost = {.latency_seconds = number("latency_seconds"), .bytes_per_second = number("bytes_per_second")},
              .residual = number("residual")};
  if (fit.cost.latency_seconds < 0 || !(fit.cost.bytes_per_second > 0)) return std::nullopt;
  return fit;
}

Json to_json(const NetworkFits& fits) {
  Json transports = Json::object();
  for (const auto& [name, fit] : fits) {
    Json& entry = transports[name] = {{"measured", fit.measured}};
    if (fit.same_host) entry["same_host"] = fit_json(*fit.same_host);
    if (fit.other_host) entry["other_host"] = fit_json(*fit.other_host);
  }
  return {{"schema", kSchema}, {"transports", std::move(transports)}};
}

std::string link_text(const char* kind, const LinkFit& fit) {
  return fmt::format("{} {} + {}/s", kind, format_seconds(fit.cost.latency_seconds),
                     format_bytes(fit.cost.bytes_per_second));
}

}  // namespace

NetworkFits fits_of(std::span<const PairResult> pairs, const std::string& measured) {
  std::map<std::string, std::vector<LinkFit>> same, other;
  for (const PairResult& pair : pairs) {
    (pair.same_host ? same : other)[pair.transport].push_back(pair.fit);
  }
  NetworkFits fits;
  for (const auto& [name, list] : same) fits[name].same_host = median_fit(list);
  for (const auto& [name, list] : other) fits[name].other_host = median_fit(list);
  for (auto& [name, fit] : fits) fit.measured = measured;
  return fits;
}

std::string default_network_file() { return cache_path("network-v1.json"); }

std::string to_text(const NetworkFits& fits) { return to_json(fits).dump(); }

NetworkFits parse_fits(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  NetworkFits fits;
  if (!json.is_object() || json.value("schema", Json()) != kSchema || !json.contains("transports")) return fits;
  for (const auto& [name, entry] : json["transports"].items()) {
    if (!entry.is_object()) continue;
    TransportFits& fit = fits[name];
    fit.same_host = parse_fit(entry, "same_host");
    fit.other_host = parse_fit(entry, "other_host");
    if (const Json measured = entry.value("measured", Json()); measured.is_string()) fit.measured = measured;
  }
  return fits;
}

NetworkFits read_network_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return parse_fits(std::string(std::istreambuf_iterator<char>(file), {}));
}

void update_network_file(const std::string& path, const NetworkFits& fits) {
  NetworkFits all = read_network_file(path);
  for (const auto& [name, fit] : fits) {
    TransportFits& entry = all[name];
    if (fit.same_host) entry.same_host = fit.same_host;
    if (fit.other_host) entry.other_host = fit.other_host;
    entry.measured = fit.measured;
  }
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
      fail(ErrorKind::failed, "cannot make the folder '{}' of the network file: {}", folder.string(), error.message());
  }
  report::write_json(to_json(all), path);
}

std::string to_string(const TransportFits& fits) {
  std::vector<std::string> words;
  if (fits.same_host) words.push_back(link_text("same host", *fits.same_host));
  if (fits.other_host) words.push_back(link_text("other host", *fits.other_host));
  return fmt::format("{}, measured {}", fmt::join(words, ", "), fits.measured);
}

std::optional<TransportFits> find_fits(const NetworkFits& fits, const std::string& transport) {
  const auto found = fits.find(transport);
  if (found == fits.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

comm::CostModel cost_model(const TransportFits& fits) {
  comm::CostModel model;
  if (fits.same_host) model.in_node = fits.same_host->cost;
  if (fits.other_host) model.across = fits.other_host->cost;
  return model;
}

}  // namespace trireme::lab
