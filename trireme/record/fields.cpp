// The fields of every record, each list for writing and reading.
#include "trireme/base/fields.hpp"

#include <tuple>

#include "trireme/record/network_record.hpp"
#include "trireme/record/training_record.hpp"

namespace trireme {

template <>
inline constexpr auto kFields<perf::Cache> = [] {
  using T = perf::Cache;
  return std::tuple(field("level", &T::level), field("bytes", &T::bytes), field("count", &T::count));
}();

template <>
inline constexpr auto kFields<perf::Machine> = [] {
  using T = perf::Machine;
  return std::tuple(field("host", &T::host), field("cpu", &T::cpu), field("os", &T::os), field("kernel", &T::kernel),
                    field("packages", &T::packages), field("numa_nodes", &T::numa_nodes), field("cores", &T::cores),
                    field("hardware_threads", &T::hardware_threads), field("usable_cores", &T::usable_cores),
                    field("caches", &T::caches), field("memory", &T::memory_bytes),
                    field("memory_available", &T::available_bytes), field("instruction_sets", &T::instruction_sets),
                    field("transparent_huge_pages", &T::transparent_huge_pages), field("load", &T::load),
                    field("warnings", &T::warnings));
}();

template <>
inline constexpr auto kFields<record::Machine> = [] {
  using T = record::Machine;
  return std::tuple_cat(
      kFields<perf::Machine>,
      std::tuple(field("gpu", &T::gpu), field("peak_flops_per_second", &T::peak_flops_per_second, Presence::if_set),
                 field("peak_of", &T::peak_of, Presence::if_set)));
}();

template <>
inline constexpr auto kFields<record::Task> = [] {
  using T = record::Task;
  return std::tuple(field("role", &T::role), field("index", &T::index), field("host", &T::host),
                    field("cores", &T::cores), field("node", &T::node, Presence::if_set));
}();

template <>
inline constexpr auto kFields<record::Stage> = [] {
  using T = record::Stage;
  return std::tuple(field("begins_at", &T::begins_at, Presence::if_set), field("replicas", &T::replicas));
}();

template <>
inline constexpr auto kFields<record::Cut> = [] {
  using T = record::Cut;
  return std::tuple(field("at", &T::at), field("bytes_per_step", &T::bytes_per_step));
}();

template <>
inline constexpr auto kFields<record::Pipeline> = [] {
  using T = record::Pipeline;
  return std::tuple(field("parallel", &T::parallel), field("stages", &T::stages, Presence::if_set),
                    field("micro_batches", &T::micro_batches, Presence::if_set),
                    field("schedule", &T::schedule, Presence::if_set), field("cuts", &T::cuts, Presence::if_set),
                    field("bubble_share", &T::bubble_share, Presence::if_set));
}();

template <>
inline constexpr auto kFields<record::ParallelPlan> = [] {
  using T = record::ParallelPlan;
  return std::tuple_cat(
      std::tuple(field("chosen", &T::chosen, Presence::if_set), field("images_per_second", &T::images_per_second),
                 field("idle_share", &T::idle_share), field("memory_bytes", &T::memory_bytes),
                 field("recompute", &T::recompute, Presence::if_set), field("problem", &T::problem, Presence::if_set)),
      kFields<record::Pipeline>);
}();

template <>
inline constexpr auto kFields<record::Breakdown> = [] {
  using T = record::Breakdown;
  return std::tuple(field("compute", &T::compute), field("communication", &T::communication),
                    field("exposed_communication", &T::exposed_communication), field("input_wait", &T::input_wait),
                    field("optimizer", &T::optimizer), field("idle", &T::idle));
}();

template <>
inline constexpr auto kFields<record::WorkerMemory> = [] {
  using T = record::WorkerMemory;
  return std::tuple(field("planned_bytes", &T::planned_bytes), field("used_bytes", &T::used_bytes));
}();

template <>
inline constexpr auto kFields<record::StepSeconds> = [] {
  using T = record::StepSeconds;
  return std::tuple(field("mean", &T::mean), field("median", &T::median), field("p95", &T::p95),
                    field("stderr", &T::stderr_mean));
}();

template <>
inline constexpr auto kFields<record::ServerLoad> = [] {
  using T = record::ServerLoad;
  return std::tuple(field("host", &T::host), field("variable_bytes", &T::variable_bytes),
                    field("bytes_received_per_step", &T::bytes_received_per_step),
                    field("bytes_sent_per_step", &T::bytes_sent_per_step), field("updates", &T::updates),
                    field("dropped_gradients", &T::dropped_gradients), field("pushes", &T::pushes),
                    field("mean_staleness", &T::mean_staleness), field("max_staleness", &T::max_staleness),
                    field("max_lead", &T::max_lead));
}();

template <>
inline constexpr auto kFields<record::Results> = [] {
  using T = record::Results;
  return std::tuple(
      field("images_per_second", &T::images_per_second),
      field("images_per_second_per_worker", &T::images_per_second_per_worker),
      field("images_per_second_per_repeat", &T::images_per_second_per_repeat), field("step_seconds", &T::step_seconds),
      field("jitter", &T::jitter), field("loss", &T::loss), field("loss_scale", &T::loss_scale),
      field("skipped_updates", &T::skipped_updates), field("breakdown", &T::breakdown), field("overlap", &T::overlap),
      field("communication_bytes", &T::communication_bytes), field("bus_bytes_per_second", &T::bus_bytes_per_second),
      field("link_bytes_per_second", &T::link_bytes_per_second), field("straggling", &T::straggling),
      field("servers", &T::servers), field("scaling_efficiency", &T::scaling_efficiency),
      field("share_of_independent", &T::share_of_independent),
      field("alone_images_per_second", &T::alone_images_per_second),
      field("independent_images_per_second", &T::independent_images_per_second),
      field("io_overhead_percent", &T::io_overhead_percent),
      field("io_overhead_percent_per_repeat", &T::io_overhead_percent_per_repeat),
      field("in_place_images_per_second", &T::in_place_images_per_second), field("bad_records", &T::bad_records),
      field("peak_rss_bytes", &T::peak_rss_bytes), field("memory", &T::memory, Presence::if_set),
      field("flops_per_second", &T::flops_per_second), field("utilisation", &T::utilisation));
}();

template <>
inline constexpr auto kFields<record::StudyRun> = [] {
  using T = record::StudyRun;
  return std::tuple(field("name", &T::name), field("cell", &T::cell), field("repeat", &T::repeat),
                    field("framework", &T::framework), field("command", &T::command, Presence::if_set),
                    field("kind", &T::kind, Presence::if_set), field("round", &T::round, Presence::if_set),
                    field("trial_seconds", &T::trial_seconds, Presence::if_set),
                    field("seconds", &T::seconds, Presence::if_set));
}();

template <>
inline constexpr auto kFields<record::RunRecord> = [] {
  using T = record::RunRecord;
  return std::tuple(field("schema", &T::schema), field("command", &T::command), field("started", &T::started),
                    field("build", &T::build), field("machine", &T::machine), field("config", &T::config),
                    field("given", &T::given), field("cluster", &T::cluster),
                    field("pipeline", &T::pipeline, Presence::if_set), field("plans", &T::plans, Presence::if_set),
                    field("steps", &T::steps), field("losses", &T::losses), field("results", &T::results),
                    field("interrupted", &T::interrupted, Presence::if_set),
                    field("error", &T::error, Presence::if_set), field("study", &T::study, Presence::if_set));
}();

template <>
inline constexpr auto kFields<record::Validation> = [] {
  using T = record::Validation;
  return std::tuple(field("top1", &T::top1), field("top5", &T::top5),
                    field("validation_samples", &T::validation_samples, Presence::if_set),
                    field("validation_loss", &T::validation_loss));
}();

template <>
inline constexpr auto kFields<record::Epoch> = [] {
  using T = record::Epoch;
  return std::tuple_cat(
      std::tuple(field("epoch", &T::epoch), field("step", &T::step), field("loss", &T::loss),
                 field("learning_rate", &T::learning_rate), field("images_per_second", &T::images_per_second),
                 field("train_seconds", &T::train_seconds), field("evaluation_seconds", &T::evaluation_seconds)),
      kFields<record::Validation>);
}();

template <>
inline constexpr auto kFields<record::CurvePoint> = [] {
  using T = record::CurvePoint;
  return std::tuple(field("step", &T::step), field("epoch", &T::epoch), field("loss", &T::loss),
                    field("learning_rate", &T::learning_rate), field("seconds", &T::seconds));
}();

template <>
inline constexpr auto kFields<record::Resumed> = [] {
  using T = record::Resumed;
  return std::tuple(field("checkpoint", &T::checkpoint), field("step", &T::step), field("epoch", &T::epoch),
                    field("train_seconds", &T::train_seconds), field("epoch_seconds", &T::epoch_seconds));
}();

template <>
inline constexpr auto kFields<record::NothingLeft> = [] {
  using T = record::NothingLeft;
  return std::tuple_cat(std::tuple(field("step", &T::step)), kFields<record::Validation>);
}();

template <>
inline constexpr auto kFields<record::TrainingRecord> = [] {
  using T = record::TrainingRecord;
  return std::tuple(field("schema", &T::schema), field("command", &T::command), field("started", &T::started),
                    field("build", &T::build), field("machine", &T::machine), field("config", &T::config),
                    field("epochs", &T::epochs), field("curve", &T::curve),
                    field("resumed", &T::resumed, Presence::if_set),
                    field("nothing_left", &T::nothing_left, Presence::if_set), field("end", &T::end, Presence::if_set),
                    field("train_seconds_here", &T::train_seconds_here, Presence::if_set),
                    field("train_seconds", &T::train_seconds), field("input_wait_seconds", &T::input_wait_seconds),
                    field("bad_records", &T::bad_records), field("bad_validation_records", &T::bad_validation_records),
                    field("checkpoint", &T::checkpoint), field("loss_scale", &T::loss_scale, Presence::if_set),
                    field("skipped_updates", &T::skipped_updates, Presence::if_set), field("cluster", &T::cluster),
                    field("pipeline", &T::pipeline, Presence::if_set), field("plans", &T::plans, Presence::if_set));
}();

template <>
inline constexpr auto kFields<record::Samples> = [] {
  using T = record::Samples;
  return std::tuple(field("median", &T::median), field("jitter", &T::jitter), field("minimum", &T::minimum),
                    field("p95", &T::p95), field("samples", &T::samples));
}();

template <>
inline constexpr auto kFields<record::Message> = [] {
  using T = record::Message;
  return std::tuple(field("mode", &T::mode), field("bytes", &T::bytes), field("bytes_per_second", &T::bytes_per_second),
                    field("seconds", &T::seconds));
}();

template <>
inline constexpr auto kFields<record::LinkFit> = [] {
  using T = record::LinkFit;
  return std::tuple(field("latency_seconds", &T::latency_seconds), field("bytes_per_second", &T::bytes_per_second),
                    field("residual", &T::residual));
}();

template <>
inline constexpr auto kFields<record::Pair> = [] {
  using T = record::Pair;
  return std::tuple(field("transport", &T::transport), field("ranks", &T::ranks), field("same_host", &T::same_host),
                    field("fit", &T::fit), field("messages", &T::messages));
}();

template <>
inline constexpr auto kFields<record::AllReduce> = [] {
  using T = record::AllReduce;
  return std::tuple(field("transport", &T::transport), field("algorithm", &T::algorithm), field("ranks", &T::ranks),
                    field("bytes", &T::bytes), field("algorithm_bytes_per_second", &T::algorithm_bytes_per_second),
                    field("bus_bytes_per_second", &T::bus_bytes_per_second), field("seconds", &T::seconds));
}();

template <>
inline constexpr auto kFields<record::Transport> = [] {
  using T = record::Transport;
  return std::tuple(field("name", &T::name), field("carried_by", &T::carried_by));
}();

template <>
inline constexpr auto kFields<record::Load> = [] {
  using T = record::Load;
  return std::tuple(field("threads", &T::threads), field("cores", &T::cores));
}();

template <>
inline constexpr auto kFields<record::Gradients> = [] {
  using T = record::Gradients;
  return std::tuple(field("name", &T::name), field("bucket_bytes", &T::bucket_bytes),
                    field("all_reduce", &T::all_reduce));
}();

template <>
inline constexpr auto kFields<record::NetworkRecord> = [] {
  using T = record::NetworkRecord;
  return std::tuple(field("schema", &T::schema), field("command", &T::command), field("started", &T::started),
                    field("build", &T::build), field("machine", &T::machine), field("config", &T::config),
                    field("cluster", &T::cluster), field("load", &T::load), field("transports", &T::transports),
                    field("pairs", &T::pairs), field("all_reduce", &T::all_reduce),
                    field("model", &T::model, Presence::if_set));
}();

namespace record {

Json to_json(const Machine& machine) { return value_to_json(machine); }
Json to_json(const StudyRun& study) { return value_to_json(study); }
Json to_json(const RunRecord& record) {
  Json json = value_to_json(record);
  if (record.error && !record.results.images_per_second) json["results"] = nullptr;  // it failed before it measured
  return json;
}
Json to_json(const TrainingRecord& record) { return value_to_json(record); }
Json to_json(const NetworkRecord& record) { return value_to_json(record); }

void read(const Json& json, ServerLoad& load) { value_from_json(json, load); }
void read(const Json& json, RunRecord& record) {
  value_from_json(json, record);
  // Other programs may say more than a text.
  if (const auto error = json.find("error"); error != json.end() && !error->is_null() && !record.error)
    record.error = error->dump(-1, ' ', false, Json::error_handler_t::replace);
}
void read(const Json& json, TrainingRecord& record) { value_from_json(json, record); }
void read(const Json& json, NetworkRecord& record) { value_from_json(json, record); }

}  // namespace record
}  // namespace trireme
