#include "trireme/train/pipeline_config.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "trireme/base/error.hpp"
#include "trireme/base/parse.hpp"

namespace trireme::train {
namespace {

constexpr int kMicroBatchesPerStage = 4;  // idle time is then a fifth of the whole at most

[[noreturn]] void refuse(const std::string& text, const std::string& problem) {
  bad_input(
      "--parallel {}: {}; allowed are data, pipeline:STAGES, hybrid:A-B-... (workers of each stage), a JSON file "
      "with stages, or auto",
      text, problem);
}

std::vector<int> parse_pipeline(const std::string& text, std::string_view value, int workers) {
  const int stages = parse_number<int>(value).value_or(0);
  if (stages < 1) refuse(text, "the number of stages must be 1 or more");
  if (workers % stages != 0) {
    refuse(text, fmt::format("{} worker{} cannot be divided evenly over {} stages", workers, workers == 1 ? "" : "s",
                             stages));
  }
  return std::vector<int>(static_cast<std::size_t>(stages), workers / stages);
}

std::vector<int> parse_hybrid(const std::string& text, std::string_view value) {
  std::vector<int> replicas;
  while (true) {
    const std::size_t end = value.find('-');
    replicas.push_back(parse_number<int>(value.substr(0, end)).value_or(0));
    if (replicas.back() < 1) refuse(text, "every stage needs 1 worker or more");
    if (end == std::string_view::npos) return replicas;
    value.remove_prefix(end + 1);
  }
}

[[noreturn]] void refuse_key(const std::string& path, const std::string& key, const Json& value, std::string_view where,
                             std::string_view allowed) {
  bad_input("{}: {}: {} {}; it has {}", path, key, value.dump(), where, allowed);
}

void read_stage(const std::string& path, const Json& stage, PipelineConfig& config) {
  int replicas = 1;
  std::string begin;
  const Json object = stage.is_object() ? stage : Json{{"stage", stage}};
  for (const auto& [key, value] : object.items()) {
    if (key == "replicas" && value.is_number_integer() && value > 0 && value < (1 << 20)) {
      replicas = value;
    } else if (key == "begins_at" && value.is_string()) {
      begin = value;
    } else {
      refuse_key(path, key, value, "in a stage", R"("replicas", 1 or more, and "begins_at", the name of a node)");
    }
  }
  config.replicas.push_back(replicas);
  if (!begin.empty()) config.cuts.push_back(begin);
  const std::size_t cuts = default_chunks(config.kind) > 1 ? 0 : config.replicas.size() - 1;
  if (config.cuts.size() == cuts) return;
  bad_input("{}: {}", path,
            cuts == 0 && config.replicas.size() > 1
                ? R"(with the schedule interleaved no stage has "begins_at": it chooses the parts itself)"
                : R"(every stage but the first has a node at which it begins, "begins_at")");
}

// A file of the user, or the `pipeline` of a record, of which the last three describe the run.
void read_file(const std::string& path, const DistributionOptions& options, PipelineConfig& config) {
  const Json json = read_json(path);
  const auto stages = json.is_object() ? json.find("stages") : json.end();
  if (stages == json.end() || !stages->is_array() || stages->empty()) {
    bad_input(
        "{}: must be {{\"stages\": [{{\"replicas\": 1}}, {{\"begins_at\": \"NODE\", \"replicas\": 1}}, ...]}}; "
        "`trireme models --plan --stages` shows names of nodes",
        path);
  }
  for (const auto& [key, value] : json.items()) {
    if (key == "micro_batches" && value.is_number_integer() && value > 0 && value <= (1 << 16)) {
      config.micro_batches = value;
    } else if (key == "schedule" && value.is_string() && find_pipeline_kind(value.get<std::string>())) {
      if (options.schedule == "auto") config.kind = *find_pipeline_kind(value.get<std::string>());
    } else if (key != "stages" && key != "parallel" && key != "cuts" && key != "bubble_share") {
      refuse_key(path, key, value, "beside \"stages\"",
                 R"("micro_batches", 1 or more, and "schedule": gpipe, 1f1b, interleaved or zb-h1)");
    }
  }
  for (const Json& stage : *stages) read_stage(path, stage, config);
}

}  // namespace

std::string PipelineConfig::text() const {
  if (!is_used()) return is_automatic ? "auto" : "data";
  const bool is_plain = std::ranges::all_of(replicas, [&](int each) { return each == replicas.front(); });
  return is_plain ? fmt::format("pipeline:{}", stages()) : fmt::format("hybrid:{}", fmt::join(replicas, "-"));
}

PipelineConfig resolve_pipeline(const DistributionOptions& options, int workers) {
  PipelineConfig config;
  const std::string& text = options.parallel;
  const std::string kind = options.schedule == "auto" ? "1f1b" : options.schedule;
  config.kind = find_pipeline_kind(kind).value_or(PipelineKind::one_forward);
  constexpr std::string_view kPipeline = "pipeline:", kHybrid = "hybrid:";
  if (text.starts_with(kPipeline)) {
    config.replicas = parse_pipeline(text, std::string_view(text).substr(kPipeline.size()), workers);
  } else if (text.starts_with(kHybrid)) {
    config.replicas = parse_hybrid(text, std::string_view(text).substr(kHybrid.size()));
  } else if (text.ends_with(".json")) {
    read_file(text, options, config);
  } else if (text == "auto" && workers > 1) {
    return {.micro_batches = static_cast<int>(options.micro_batches.value_or(0)), .is_automatic = true};
  } else if (text != "data" && text != "auto") {
    refuse(text, "unknown");
  }
  if (!config.is_used()) {
    constexpr std::string_view kWhy = "without a pipeline: --parallel pipeline:STAGES";
    if (options.micro_batches) bad_input("--micro-batches has no effect {}", kWhy);
    if (options.schedule != "auto") bad_input("--schedule has no effect {}", kWhy);
    return config;
  }
  const int needed = std::accumulate(config.replicas.begin(), config.replicas.end(), 0);
  if (needed != workers) {
    refuse(text,
           fmt::format("its stages have {} workers, but there {} {}", needed, workers == 1 ? "is" : "are", workers));
  }
  const bool are_alike =
      std::ranges::all_of(config.replicas, [&](int each) { return each == config.replicas.front(); });
  if (default_chunks(config.kind) > 1 && !are_alike) {
    bad_input("--schedule interleaved: needs equally many workers in each stage, not {}; use another schedule", text);
  }
  if (options.micro_batches) config.micro_batches = static_cast<int>(*options.micro_batches);
  return config;
}

void divide_batch(PipelineConfig& config, std::int64_t global_batch) {
  std::int64_t unit = 1;
  for (const int replicas : config.replicas) unit = std::lcm<std::int64_t>(unit, replicas);
  if (default_chunks(config.kind) > 1) unit *= config.stages();
  const auto fits = [&](std::int64_t count) { return count % unit == 0 && global_batch % count == 0; };
  std::vector<std::int64_t> fitting;
  for (std::int64_t count = 1; count <= std::min<std::int64_t>(global_batch, 1 << 16); ++count) {
    if (fits(count)) fitting.push_back(count);
  }
  if (config.micro_batches > 0 ? !fits(config.micro_batches) : fitting.empty()) {
    const std::string given = config.micro_batches > 0 ? fmt::format("--micro-batches {}: ", config.micro_batches) : "";
    bad_input("{}the {} images of a step cannot be divided into equal micro-batches that suit {}{}; {}", given,
              global_batch, config.text(), unit > 1 ? fmt::format(", a multiple of {}", unit) : "",
              fitting.empty() ? "choose another --batch-size"
                              : fmt::format("these numbers fit: {}", fmt::join(fitting, ", ")));
  }
  if (config.micro_batches > 0) return;
  const auto enough = std::ranges::find_if(
      fitting, [&](std::int64_t count) { return count >= std::int64_t{kMicroBatchesPerStage} * config.stages(); });
  config.micro_batches = static_cast<int>(enough == fitting.end() ? fitting.back() : *enough);
}

std::shared_ptr<const StageOptions> stage_options(const PipelineConfig& config, const Graph& graph,
                                                  std::span<const Tensor> fetches, const Backend& backend, int rank) {
  const int chunks = default_chunks(config.kind);
  auto options = std::make_shared<StageOptions>();
  std::vector<int> workers;  // [part]
  for (int chunk = 0; chunk < chunks; ++chunk)
    workers.insert(workers.end(), config.replicas.begin(), config.replicas.end());
  options->cuts = config.cuts.empty()
                      ? choose_cuts(graph, fetches, backend, config.stages() * chunks, workers, config.micro_batches)
                      : config.cuts;
  options->order = make_pipeline_order(
      config.kind,
      {.stages = config.stages(), .micro_batches = config.micro_batches, .chunks = chunks, .replicas = config.replicas},
      config.costs);
  const PipelineShape::Place place = config.place_of(rank);
  options->stage = place.stage;
  options->replica = place.replica;
  return options;
}

}  // namespace trireme::train
