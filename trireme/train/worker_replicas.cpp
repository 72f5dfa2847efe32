// The part of Worker that connects replicas or servers, describes them, and goes on without those that are lost.
#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/measure_links.hpp"
#include "trireme/parallel/all_reduce_sync.hpp"
#include "trireme/parallel/device_link.hpp"
#include "trireme/parallel/device_sync.hpp"
#include "trireme/parallel/pipeline_link.hpp"
#include "trireme/parallel/staged_link.hpp"
#include "trireme/runtime/stage_line.hpp"
#include "trireme/train/worker.hpp"

namespace trireme::train {
namespace {

parallel::ReplicaOptions replica_options(const DistributionConfig& config, const std::vector<int>& processors,
                                         const comm::CostModel& cost, perf::Recorder* recorder) {
  parallel::ReplicaOptions options;
  // Any processor of this worker: the creating thread is pinned to one.
  if (!processors.empty()) {
    options.start_thread = [processors] { std::ignore = perf::limit_thread(processors); };
  }
  options.all_reduce.algorithm = config.all_reduce;
  options.all_reduce.wire = config.wire;
  options.all_reduce.cost = cost;
  options.overlap = config.overlap;
  options.recorder = recorder;
  options.sync_batch_norm = config.sync_batch_norm;
  options.shard_optimizer = config.shard_optimizer;
  options.timeout = std::chrono::duration<double>(config.comm_timeout);
  return options;
}

ps::WorkerOptions worker_options(const DistributionConfig& config, const std::vector<int>& processors,
                                 perf::Recorder* recorder) {
  ps::WorkerOptions options;
  options.placement = config.placement;
  options.mode = config.asynchronous ? ps::Mode::asynchronous : ps::Mode::synchronous;
  options.replicated = config.update == VariableUpdate::distributed_replicated;
  options.staleness = config.staleness.value_or(-1);
  options.backup_workers = config.backup_workers;
  options.overlap = config.overlap;
  options.timeout_seconds = config.comm_timeout;
  options.recorder = recorder;
  if (!processors.empty()) options.start_thread = [processors] { std::ignore = perf::limit_thread(processors); };
  return options;
}

}  // namespace

void Worker::describe_workers() {
  setup_.members.assign(workers_->members().begin(), workers_->members().end());
  if (!replicas_) return;
  setup_.transport = (servers_ != nullptr ? *with_servers_ : *workers_).transport();
  if (servers_ != nullptr) {
    const auto members = with_servers_->members().subspan(setup_.members.size());
    setup_.servers.assign(members.begin(), members.end());
    setup_.server_loads = servers_->placement().loads();
  }
  std::int64_t largest = 0;
  for (const GradientBucket& bucket : replicas_->sync().buckets()) {
    setup_.bucket_bytes.push_back(bucket.bytes());
    largest = std::max(largest, bucket.bytes());
  }
  if (replicas_->sync().kind() == Exchange::reduce_on_device) setup_.all_reduce = "nccl";
  const auto* sync = dynamic_cast<const parallel::AllReduceSync*>(&replicas_->sync());
  const bool sums = sync != nullptr || elastic_ != nullptr;
  if (!sums || setup_.bucket_bytes.empty()) return;  // a stage of one worker sums with nobody
  const comm::AllReducer& reducer = sync != nullptr ? sync->reducer() : elastic_->reducer();
  setup_.all_reduce = comm::to_string(reducer.algorithm_for(largest));
  setup_.wire = reducer.wire_for(largest);
}

// The first worker's file counts: all must choose alike.
comm::CostModel Worker::network_cost() {
  const DistributionConfig& distribution = config_.distribution;
  if (!distribution.chooses_all_reduce() || distribution.network_file.empty()) return {};
  std::string text;
  if (workers_->rank() == 0) {
    const std::string& path = distribution.network_file;
    if (distribution.network_file_given && !std::filesystem::exists(path)) {
      bad_input("--network-file {}: there is no such file; `trireme net` writes one", path);
    }
    if (distribution.network_file_given && !comm::is_network_file(path)) {
      bad_input("--network-file {}: not a network file of this version; `trireme net --network-file` writes one", path);
    }
    text = to_text(comm::read_network_file(path));
  }
  comm::NetworkFits fits = comm::parse_fits(comm::broadcast_text(*workers_, std::move(text)));
  const std::string transport(workers_->protocol());
  std::erase_if(fits, [&](const auto& item) { return item.first != transport; });
  setup_.network_problems = comm::remove_bad(fits);
  setup_.network = comm::find_fits(fits, transport);
  if (!setup_.network) return {};
  const std::string doubts = comm::broadcast_text(  // the first worker's clock counts
      *workers_, comm::doubts_of(*setup_.network, std::chrono::system_clock::now()));
  const bool is_used = comm::layout_of(*workers_).nodes > 1;  // one host sums in shared memory
  if (doubts.empty() || config_.options.deterministic || !is_used) return cost_model(*setup_.network);
  const comm::CostModel cost = comm::measure_links(*workers_);
  setup_.network_problems.push_back(fmt::format(
      "{}: doubtful, as {}; measured again for this run: {} + {}/s; `trireme net` renews the file", transport, doubts,
      format_seconds(cost.across.latency_seconds), format_bytes(cost.across.bytes_per_second)));
  setup_.network.reset();
  return cost;
}

// Collective. Empty: the GPUs can sum gradients among themselves.
std::string Worker::why_not_between_gpus() const {
  const ComputeDevice& device = backend_->device();
  workers_->set_context("comparing GPUs");
  const std::vector<std::string> gpus =
      comm::all_gather_text(*workers_, device.has_groups() ? device.identity() : std::string());
  if (std::find(gpus.begin(), gpus.end(), "") != gpus.end()) return "NCCL is not available";
  if (std::set<std::string>(gpus.begin(), gpus.end()).size() < gpus.size()) return "workers share a GPU";
  return "";
}

// GPUs exchange in the order of their work: with several parts of the network, stages may wait for each other in turn.
std::unique_ptr<StageLink> Worker::make_link(const parallel::ReplicaOptions& options) {
  const bool has_one_part = default_chunks(config_.distribution.pipeline.kind) == 1;
  if (config_.distribution.gpu_sums != GpuSums::never && has_one_part) {
    const std::string problem = why_not_between_gpus();
    if (problem.empty()) {
      setup_.gradient_path = "from GPU to GPU";
      return std::make_unique<parallel::DeviceLink>(*workers_, backend_->device(), options.timeout);
    }
    setup_.gradient_path += fmt::format(" ({})", problem);
  }
  watch_ = std::make_unique<parallel::PeerWatch>(*workers_, options.timeout, options.start_thread);
  auto link = std::make_unique<parallel::PipelineLink>(
      *workers_, parallel::PipelineLink::Options{.timeout = options.timeout,
                                                 .start_thread = options.start_thread,
                                                 .recorder = options.recorder,
                                                 .watch = watch_.get()});
  if (!config_.on_gpu()) return link;
  return std::make_unique<parallel::StagedLink>(std::move(link), backend_->device());
}

// Of a pipeline: connects the stages, and the replicas of this one.
std::unique_ptr<parallel::Replicas> Worker::make_stage() {
  const parallel::ReplicaOptions options =
      replica_options(config_.distribution, setup_.threads.cores, network_cost(), options_.recorder);
  const int stage = config_.distribution.pipeline.place_of(workers_->rank()).stage;
  stage_ = workers_->split(stage, workers_->rank());
  stage_in_steps_ = stage_->split(0, stage_->rank());
  stage_in_steps_->set_timeout(options.timeout);                                // while others compile, it is longer
  if (options.recorder != nullptr) StageLine::track(*options.recorder, stage);  // first in the file
  link_ = make_link(options);
  auto sync = std::make_unique<parallel::PipelineSync>(*stage_in_steps_, *workers_, options, watch_.get());
  pipeline_ = sync.get();
  return std::make_unique<parallel::Replicas>(*stage_, std::move(sync), options);
}

std::unique_ptr<parallel::Replicas> Worker::make_replicas() {
  const DistributionConfig& distribution = config_.distribution;
  const std::vector<int>& processors = setup_.threads.cores;
  if (config_.on_gpu()) setup_.gradient_path = "through the hosts' memory";
  if (distribution.uses_servers()) {
    auto sync = std::make_unique<ps::WorkerSync>(*with_servers_, distribution.workers,
                                                 worker_options(distribution, processors, options_.recorder));
    servers_ = sync.get();
    return std::make_unique<parallel::Replicas>(*workers_, std::move(sync),
                                                replica_options(distribution, processors, {}, options_.recorder));
  }
  if (distribution.pipeline.is_used()) return make_stage();
  if (!distribution.is_synchronous()) return nullptr;
  if (distribution.gpu_sums != GpuSums::never) {
    const std::string problem = why_not_between_gpus();
    if (problem.empty()) {
      setup_.gradient_path = "from GPU to GPU";
      return std::make_unique<parallel::Replicas>(*workers_,
                                                  std::make_unique<parallel::DeviceSync>(*workers_, backend_->device()),
                                                  replica_options(distribution, processors, {}, options_.recorder));
    }
    if (distribution.gpu_sums == GpuSums::always) bad_input("--all-reduce nccl: {}", problem);
    setup_.gradient_path += fmt::format(" ({})", problem);
  }
  const parallel::ReplicaOptions options = replica_options(distribution, processors, network_cost(), options_.recorder);
  if (!distribution.is_elastic()) return std::make_unique<parallel::Replicas>(*workers_, options);
  if (teams_ == nullptr) bad_input("--elastic: nobody tells this worker who is lost; use `trireme launch`");
  auto sync = std::make_unique<parallel::ElasticSync>(*workers_, *teams_, options,
                                                      [this] { return update_loss_ + step_->loss(); });
  elastic_ = sync.get();
  return std::make_unique<parallel::Replicas>(*workers_, std::move(sync), options);
}

void Worker::leave_lost_behind() {
  if (!config_.distribution.survives_lost_workers() || workers_->size() == 1) return;
  const auto go_on_with = [this](comm::Communicator& of, const std::vector<int>& ranks) {
    std::unique_ptr<comm::Communicator> survivors = of.subgroup(ranks);
    survivors_ = std::move(survivors);
    workers_ = survivors_.get();
    replicas_->set_communicator(*workers_);
  };
  // Those who have made the last step know each other; some may be lost since.
  if (elastic_ != nullptr && std::ssize(team_.ranks) < workers_->size()) go_on_with(*launched_, team_.ranks);
  const std::vector<int> left = comm::agree_on_survivors(*workers_);
  if (static_cast<int>(left.size()) == workers_->size()) return;
  go_on_with(*workers_, left);
}

int Worker::place_in_team() const {
  const auto place = std::ranges::find(team_.ranks, launched_->rank());
  return static_cast<int>(place - team_.ranks.begin());
}

// A step that was begun together keeps its samples, whoever finishes it.
void Worker::end_update(int runs) {
  ++updates_;
  update_loss_ = 0;
  const auto workers = static_cast<int>(team_.ranks.size());
  const SampleLedger::Update update{.batch = config_.batch_size, .workers = workers, .runs = runs};
  if (elastic_ == nullptr || elastic_->committed_by().epoch == team_.epoch) return samples_.commit(update);
  const comm::Team& now = elastic_->committed_by();
  std::vector<int> lost;
  for (int place = 0; place < workers; ++place) {
    if (std::ranges::find(now.ranks, team_.ranks[place]) == now.ranks.end()) lost.push_back(place);
  }
  samples_.commit(update, lost);
  team_ = now;
  if (input_) input_->restart(place_in_team(), static_cast<int>(team_.ranks.size()), samples_);
  if (launched_->rank() > 0) return;
  log_line(
      fmt::format("{} of {} workers go on from step {} of this run", team_.ranks.size(), launched_->size(), updates_));
}

double Worker::share_of_workers() const {
  return static_cast<double>(team_.ranks.size()) / static_cast<double>(launched_->size());
}

std::optional<double> Worker::loss_of_all() const {
  return elastic_ != nullptr ? std::optional(elastic_->mean_loss()) : std::nullopt;
}

void Worker::expect_delay() {
  if (elastic_ != nullptr) elastic_->expect_delay();
}

}  // namespace trireme::train
