#include "trireme/comm/network_file.hpp"

#include <fmt/ranges.h>

#include <cmath>
#include <ctime>
#include <filesystem>
#include <iomanip>
#include <sstream>

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/base/units.hpp"
#include "trireme/perf/machine.hpp"

namespace trireme::comm {
namespace {

constexpr const char* kSchema = "trireme.network/2";
constexpr double kDay = 86400;  // seconds

Json to_json(const KeptFit& kept) {
  return {{"latency_seconds", kept.fit.cost.latency_seconds},
          {"bytes_per_second", kept.fit.cost.bytes_per_second},
          {"residual", kept.fit.residual},
          {"small_sizes", kept.fit.small_sizes},
          {"large_sizes", kept.fit.large_sizes},
          {"measured", kept.when.started},
          {"load", kept.when.load},
          {"cores", kept.when.cores},
          {"contradicted", kept.contradicted}};
}

std::optional<KeptFit> parse_fit(const Json& json, const char* kind) {
  if (!json.contains(kind) || !json[kind].is_object()) return std::nullopt;
  const auto number = [&](const char* key) {
    const Json value = json[kind].value(key, Json());
    return value.is_number() ? value.get<double>() : -1.0;
  };
  KeptFit kept{
      .fit = {.cost = {.latency_seconds = number("latency_seconds"), .bytes_per_second = number("bytes_per_second")},
              .residual = number("residual"),
              .small_sizes = static_cast<int>(number("small_sizes")),
              .large_sizes = static_cast<int>(number("large_sizes"))},
      .when = {.started = "", .load = number("load"), .cores = static_cast<int>(number("cores"))},
      .contradicted = json[kind].value("contradicted", Json()) == true};
  if (const Json measured = json[kind].value("measured", Json()); measured.is_string()) kept.when.started = measured;
  if (kept.fit.cost.latency_seconds < 0 || !(kept.fit.cost.bytes_per_second > 0)) return std::nullopt;
  return kept;
}

Json to_json(const NetworkFits& fits) {
  Json transports = Json::object();
  for (const auto& [name, fit] : fits) {
    Json& entry = transports[name] = Json::object();
    if (fit.same_host) entry["same_host"] = to_json(*fit.same_host);
    if (fit.other_host) entry["other_host"] = to_json(*fit.other_host);
  }
  return {{"schema", kSchema}, {"transports", std::move(transports)}};
}

std::string link_text(const char* kind, const LinkFit& fit) {
  return fmt::format("{} {} + {}/s", kind, format_seconds(fit.cost.latency_seconds),
                     format_bytes(fit.cost.bytes_per_second));
}

// In seconds, from RFC 3339 in UTC; below 0 if malformed or not in the past.
double age_of(const std::string& since, std::chrono::system_clock::time_point now) {
  std::tm parts{};
  std::istringstream text(since);
  if (!(text >> std::get_time(&parts, "%Y-%m-%dT%H:%M:%SZ"))) return -1;
  return std::difftime(std::chrono::system_clock::to_time_t(now), timegm(&parts));
}

// "3 days"
std::string age_text(double seconds) {
  const auto whole = [](double count, const char* unit) {
    return fmt::format("{:.0f} {}{}", std::floor(count), unit, std::floor(count) == 1 ? "" : "s");
  };
  if (seconds < 2 * 60) return whole(seconds, "second");
  if (seconds < 2 * 3600) return whole(seconds / 60, "minute");
  if (seconds < 2 * kDay) return whole(seconds / 3600, "hour");
  return whole(seconds / kDay, "day");
}

std::string doubts_of(const KeptFit& kept, std::chrono::system_clock::time_point now) {
  std::vector<const char*> doubts;
  if (kept.contradicted) doubts.push_back("steps contradicted it");
  if (age_of(kept.when.started, now) > perf::kDaysTrusted * kDay) doubts.push_back("it is old");
  if (kept.when.load > perf::kBusyLoad * kept.when.cores) doubts.push_back("a host was busy");
  return fmt::format("{}", fmt::join(doubts, " and "));
}

std::string when_text(const KeptFit& kept, std::chrono::system_clock::time_point now) {
  const MeasuredWhen& when = kept.when;
  const double age = age_of(when.started, now);
  const std::string text = fmt::format("measured {} under a load of {:.1f} on {} cores",
                                       age < 0 ? when.started : fmt::format("{} ago ({})", age_text(age), when.started),
                                       when.load, when.cores);
  const std::string doubts = doubts_of(kept, now);
  return doubts.empty() ? text : fmt::format("{}; doubtful, as {}: repeat `trireme net`", text, doubts);
}

// Calls with the name of the kind and the fit, which may be missing.
template <typename Fits, typename Call>
void for_each_kind(Fits& fits, Call call) {
  call("same host", fits.same_host);
  call("other host", fits.other_host);
}

bool is_of_this_kind(const Json& json) {
  return json.is_object() && json.value("schema", Json()) == kSchema && json.contains("transports");
}

}  // namespace

std::vector<std::string> remove_bad(NetworkFits& fits) {
  std::vector<std::string> problems;
  for (auto& [name, transport] : fits) {
    for_each_kind(transport, [&, &name = name](const char* kind, std::optional<KeptFit>& kept) {
      const std::string problem = kept ? problem_of(kept->fit) : "";
      if (problem.empty()) return;
      problems.push_back(fmt::format("{}, {}: {}", name, kind, problem));
      kept.reset();
    });
  }
  std::erase_if(fits, [](const auto& item) { return item.second.empty(); });
  return problems;
}

std::vector<std::string> names_of(const NetworkFits& fits) {
  std::vector<std::string> names;
  for (const auto& [name, transport] : fits) {
    for_each_kind(transport, [&, &name = name](const char* kind, const std::optional<KeptFit>& kept) {
      if (kept) names.push_back(fmt::format("{}, {}", name, kind));
    });
  }
  return names;
}

std::string default_network_file() { return cache_path("network-v2.json"); }

std::string to_text(const NetworkFits& fits) { return to_json(fits).dump(); }

NetworkFits parse_fits(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  NetworkFits fits;
  if (!is_of_this_kind(json)) return fits;
  for (const auto& [name, entry] : json["transports"].items()) {
    if (!entry.is_object()) continue;
    TransportFits& fit = fits[name];
    fit.same_host = parse_fit(entry, "same_host");
    fit.other_host = parse_fit(entry, "other_host");
  }
  return fits;
}

bool is_network_file(const std::string& path) { return is_of_this_kind(Json::parse(read_text(path), nullptr, false)); }

NetworkFits read_network_file(const std::string& path) { return parse_fits(read_text(path)); }

void update_network_file(const std::string& path, const NetworkFits& fits) {
  NetworkFits all = read_network_file(path);
  for (const auto& [name, fit] : fits) {
    TransportFits& entry = all[name];
    if (fit.same_host) entry.same_host = fit.same_host;
    if (fit.other_host) entry.other_host = fit.other_host;
  }
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
      fail(ErrorKind::failed, "cannot make the folder '{}' of the network file: {}", folder.string(), error.message());
  }
  write_json(to_json(all), path);
}

void mark_contradicted(const std::string& path, const std::string& transport,
                       std::optional<KeptFit> TransportFits::*kind, const MeasuredWhen& when) {
  NetworkFits all = read_network_file(path);
  std::optional<KeptFit>& kept = all[transport].*kind;
  if (!kept || kept->when != when) return;
  kept->contradicted = true;
  write_json(to_json(all), path);
}

std::string to_string(const TransportFits& fits, std::chrono::system_clock::time_point now) {
  std::vector<std::string> words;
  const bool at_once = fits.same_host && fits.other_host && fits.same_host->when == fits.other_host->when &&
                       fits.same_host->contradicted == fits.other_host->contradicted;
  for_each_kind(fits, [&](const char* kind, const std::optional<KeptFit>& kept) {
    if (!kept) return;
    words.push_back(link_text(kind, kept->fit));
    if (!at_once) words.back() += ", " + when_text(*kept, now);
  });
  if (at_once) words.back() += ", " + when_text(*fits.same_host, now);
  return fmt::format("{}", fmt::join(words, "; "));
}

std::string doubts_of(const TransportFits& fits, std::chrono::system_clock::time_point now) {
  std::string doubts;
  for_each_kind(fits, [&](const char*, const std::optional<KeptFit>& kept) {
    if (kept && doubts.empty()) doubts = doubts_of(*kept, now);
  });
  return doubts;
}

std::optional<TransportFits> find_fits(const NetworkFits& fits, const std::string& transport) {
  const auto found = fits.find(transport);
  if (found == fits.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

CostModel cost_model(const TransportFits& fits) {
  CostModel model;
  if (fits.same_host) model.in_node = fits.same_host->fit.cost;
  if (fits.other_host) model.across = fits.other_host->fit.cost;
  return model;
}

}  // namespace trireme::comm
