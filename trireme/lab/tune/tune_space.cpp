#include "trireme/lab/tune/tune_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "trireme/base/error.hpp"
#include "trireme/models/model.hpp"
#include "trireme/train/distribution.hpp"

namespace trireme::lab {
namespace {

constexpr double kMegabyte = 1e6;
constexpr std::int64_t kSmallestBatch = 4;
constexpr std::int64_t kMostStages = 8;

// Powers of two from the first to the last, and the last itself.
Json doublings(std::int64_t first, std::int64_t last) {
  Json values = Json::array();
  for (std::int64_t value = first; value < last; value *= 2) values.push_back(value);
  values.push_back(last);
  return values;
}

// Set by the user with --set; the last one counts, and '_' means '-' as on the command line.
std::optional<std::string> set_value(const TuneRequest& request, const std::string& option) {
  std::optional<std::string> value;
  for (const std::string& assignment : request.set) {
    std::string name = assignment.substr(0, assignment.find('='));
    std::ranges::replace(name, '_', '-');
    if (name == option) value = assignment.substr(std::min(name.size() + 1, assignment.size()));
  }
  return value;
}

bool trains(const TuneRequest& request) { return set_value(request, "forward-only") != "true"; }
bool runs_on_gpus(const TuneRequest& request) { return set_value(request, "device").value_or("").starts_with("cuda"); }

std::int64_t most_workers(const TuneRequest& request, const StudyMachine& machine, const TuneAbilities& abilities) {
  if (!request.workers_up_to) {
    return abilities.starts_workers && !runs_on_gpus(request) ? machine.cores : 1;
  }
  if (*request.workers_up_to < 1) bad_input("--workers-up-to {}: must be at least 1", *request.workers_up_to);
  if (*request.workers_up_to > 1 && !abilities.starts_workers) {
    fail(ErrorKind::unavailable,
         "--workers-up-to {}: this build has no MPI, so workers could not talk to each other; install libopenmpi-dev "
         "and build again",
         *request.workers_up_to);
  }
  return *request.workers_up_to;
}

// Texts, because one is not a number: from a few buckets to a single one.
Json bucket_sizes(double gradient_bytes) {
  Json sizes = Json::array({"auto"});
  const double whole = std::exp2(std::ceil(std::log2(std::max(gradient_bytes / kMegabyte, 0.5))));
  for (const double part : {64.0, 8.0, 1.0}) {
    const double size = whole / part;
    if (size >= 0.1) sizes.push_back(fmt::format("{:g}", size));
  }
  return sizes;
}

Json batch_sizes(const TuneRequest& request) {
  for (const std::int64_t batch : request.batches) {
    if (batch < 1) bad_input("--batches: {}: must be at least 1", batch);
  }
  if (!request.batches.empty()) return request.batches;
  const std::int64_t own = find_model(request.model).batch_size;
  return doublings(std::min(kSmallestBatch, own), own);
}

constexpr std::string_view kPipeline = "pipeline:";

// Stages of equally many workers, for some of these numbers of workers.
Json parallel_choices(const Json& workers) {
  Json choices = {"data"};
  for (std::int64_t stages = 2; stages <= kMostStages; ++stages) {
    const auto suits = [&](const Json& count) { return count.get<std::int64_t>() % stages == 0; };
    if (std::none_of(workers.begin(), workers.end(), suits)) continue;
    const std::string parallel = fmt::format("{}{}", kPipeline, stages);
    choices.push_back(parallel);
    choices.push_back({{"label", parallel + " zb-h1"}, {"parallel", parallel}, {"schedule", "zb-h1"}});
  }
  return choices;
}

// Rejects --set for what has its own option, which decides more.
void check_settings(const TuneRequest& request) {
  if (set_value(request, "model")) bad_input("--set model: give the network with --model");
  if (set_value(request, "max-seconds")) bad_input("--set max-seconds: give the length of a trial with --trial-time");
}

void check_objective(const TuneRequest& request) {
  const TuneObjective& objective = request.objective;
  const bool at_batch = objective.goal == TuneObjective::Goal::images_per_second_at_batch;
  if (at_batch && objective.effective_batch < 1) {
    bad_input("--objective images-per-second-at-batch needs --effective-batch N, the images per step of all workers");
  }
  if (!at_batch && objective.effective_batch != 0) {
    bad_input("--effective-batch needs --objective images-per-second-at-batch");
  }
  if (at_batch && !request.batches.empty()) {
    bad_input("--batches: --effective-batch already decides the batch of each worker; leave one of them out");
  }
  if (at_batch && set_value(request, "batch-size")) {
    bad_input("--set batch-size: --effective-batch already decides the batch of each worker; leave one of them out");
  }
  const bool by_epoch = objective.goal == TuneObjective::Goal::epoch_time;
  if (by_epoch && objective.samples < 1) {
    bad_input("--objective epoch-time needs --samples N, the images per epoch");
  }
  if (!by_epoch && objective.samples != 0) bad_input("--samples needs --objective epoch-time");
}

Json tune_plan(const TuneRequest& request, const StudyMachine& machine, const TuneAbilities& abilities,
               double gradient_bytes) {
  const std::int64_t workers = most_workers(request, machine, abilities);
  Json plan{{"schema", kPlanSchema},
            {"name", "tune-" + request.model},
            {"title", fmt::format("The fastest configuration of {}", request.model)},
            {"question", "Which combination of processes, threads, batch, servers and exchange trains fastest here?"},
            {"figure", "bars"},
            {"fixed", {{"model", request.model}}},
            {"vary", {{"workers", doublings(1, workers)}}},
            {"constraints", Json::array()},
            {"repeats", 1}};
  Json& vary = plan["vary"];
  if (!runs_on_gpus(request)) {
    vary["num-intra-threads"] = doublings(1, machine.cores);
    if (machine.cores > 1) vary["num-inter-threads"] = {1, 2};
  }
  if (const std::int64_t batch = request.objective.effective_batch; batch > 0) {
    plan["fixed"]["batch-size"] = fmt::format("={} / workers", batch);
    plan["constraints"].push_back(fmt::format("{} % workers == 0", batch));
  } else {
    vary["batch-size"] = batch_sizes(request);
  }
  if (workers == 1 || !trains(request)) return plan;
  if (abilities.starts_servers) {
    vary["ps"] = doublings(1, workers);
    vary["ps"].insert(vary["ps"].begin(), 0);
  }
  vary["all-reduce"] = {"auto", "ring", "halving_doubling", "tree", "hierarchical", "library"};
  vary["bucket-mb"] = bucket_sizes(gradient_bytes);
  vary["parallel"] = parallel_choices(vary["workers"]);
  return plan;
}

// Threads must fit the cores, and options without effect in a cell have one value there: the first, auto unless the
// user chose.
void add_constraints(Json& plan) {
  const Json& vary = plan["vary"];
  Json& constraints = plan["constraints"];
  if (vary.contains("num-inter-threads")) {
    constraints.push_back("workers == 1 or num-inter-threads == 1");
    constraints.push_back("workers * num-intra-threads * num-inter-threads <= cores * hosts");
  } else if (vary.contains("num-intra-threads")) {
    constraints.push_back("workers * num-intra-threads <= cores * hosts");
  }
  const bool has_servers = vary.contains("ps");
  if (has_servers) constraints.push_back("ps <= workers and (ps == 0 or workers > 1)");
  const bool has_pipelines = vary.contains("parallel");
  for (const char* option : {"all-reduce", "bucket-mb"}) {
    if (!vary.contains(option)) continue;
    constraints.push_back(fmt::format("{} == '{}' or (workers > 1{}{})", option, value_text(vary[option][0]),
                                      has_servers ? " and ps == 0" : "",
                                      has_pipelines ? " and parallel == 'data'" : ""));
  }
  if (!has_pipelines) return;
  if (has_servers) constraints.push_back("ps == 0 or parallel == 'data'");
  for (const Json& choice : vary["parallel"]) {
    const std::string parallel = value_text(choice.is_object() ? choice["parallel"] : choice);
    if (!parallel.starts_with(kPipeline)) continue;
    const std::string constraint =
        fmt::format("parallel != '{}' or workers % {} == 0", parallel, parallel.substr(kPipeline.size()));
    if (constraints.back() != constraint) constraints.push_back(constraint);
  }
}

double number_of(const StudyCell& cell, const std::string& option, double otherwise) {
  const Json* value = find(cell.configuration, option);
  return value != nullptr && value->is_number() ? value->get<double>() : otherwise;
}

double bucket_bytes_of(const StudyCell& cell, double gradient_bytes) {
  double megabytes = 0;
  if (const Json* value = find(cell.configuration, "bucket-mb")) {
    const std::string text = value_text(*value);
    std::from_chars(text.data(), text.data() + text.size(), megabytes);
  }
  if (megabytes > 0) return megabytes * kMegabyte;
  return static_cast<double>(train::bucket_bytes_for({}, static_cast<std::int64_t>(gradient_bytes)));
}

TuneCandidate candidate_of(const StudyCell& cell, double gradient_bytes, std::int64_t own_batch) {
  TuneCandidate candidate;
  candidate.layout = {.workers = number_of(cell, "workers", 1),
                      .servers = number_of(cell, "ps", 0),
                      .threads = number_of(cell, "num-intra-threads", 1) * number_of(cell, "num-inter-threads", 1),
                      .batch = number_of(cell, "batch-size", static_cast<double>(own_batch)),
                      .bucket_bytes = bucket_bytes_of(cell, gradient_bytes)};
  for (const auto& [name, value] : cell.varied.items()) {
    if (value.is_number()) {
      candidate.point.emplace_back(value.get<double>());
    } else {
      candidate.point.emplace_back(value_text(value));
    }
  }
  return candidate;
}

// One process on all cores with the network's own batch and nothing set by hand, or the nearest to that.
std::size_t find_default(const TuneSpace& space, std::int64_t own_batch) {
  const auto distance = [&](std::size_t index) {
    const StudyCell& cell = space.cells[index];
    const WorkLayout& layout = space.candidates[index].layout;
    int chosen_by_hand = 0;
    for (const auto& [option, usual] :
         {std::pair("all-reduce", "auto"), std::pair("bucket-mb", "auto"), std::pair("parallel", "data")}) {
      if (const Json* value = find(cell.configuration, option)) chosen_by_hand += *value == usual ? 0 : 1;
    }
    return std::tuple(layout.workers, layout.servers, -layout.threads, number_of(cell, "num-inter-threads", 1),
                      chosen_by_hand, std::abs(layout.batch - static_cast<double>(own_batch)));
  };
  std::size_t nearest = 0;
  for (std::size_t i = 1; i < space.cells.size(); ++i) {
    if (distance(i) < distance(nearest)) nearest = i;
  }
  return nearest;
}

}  // namespace

double TuneObjective::score(const WorkLayout& layout, double step_seconds) const {
  if (goal != Goal::epoch_time) return layout.images() / step_seconds;
  const auto images = static_cast<double>(samples);
  return images / (std::ceil(images / layout.images()) * step_seconds);
}

std::string TuneObjective::text(double score) const {
  if (goal != Goal::epoch_time) return fmt::format("{:.1f} images/sec", score);
  return fmt::format("{:.4g} s per epoch", static_cast<double>(samples) / score);
}

TuneSpace make_tune_space(const TuneRequest& request, const OptionCatalog& options, const StudyMachine& machine,
                          const TuneAbilities& abilities) {
  check_objective(request);
  check_settings(request);
  const std::int64_t own_batch = find_model(request.model).batch_size;
  Graph graph;
  const ModelCounts counts = count(graph, build_model(graph, request.model, {.batch_size = 1}));
  TuneSpace space;
  // Backward takes twice the work of forward; a multiply-add counts as two.
  space.flops_per_image = counts.forward_macs * (trains(request) ? 6 : 2);
  space.gradient_bytes = trains(request) ? 4.0 * static_cast<double>(counts.parameters) : 0;
  Json plan = tune_plan(request, machine, abilities, space.gradient_bytes);
  for (const std::string& assignment : request.set) set_option(plan, assignment, options);
  add_constraints(plan);
  space.plan = parse_plan(plan, "tune", options, machine);
  space.cells = cells_of(space.plan, options);
  for (const StudyCell& cell : space.cells)
    space.candidates.push_back(candidate_of(cell, space.gradient_bytes, own_batch));
  space.default_cell = find_default(space, own_batch);
  return space;
}

}  // namespace trireme::lab
