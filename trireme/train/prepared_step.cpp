#include "trireme/train/prepared_step.hpp"

#include <algorithm>

#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"

namespace trireme::train {
namespace {

constexpr std::int64_t kSplitUpdateBytes = 32 << 20;

}  // namespace

PreparedStep::PreparedStep(const StepConfig& config, const perf::ThreadPlan& threads, const Backend& backend,
                           parallel::Replicas* replicas, int rank, const std::function<void(Session&)>& restore,
                           StageLink* link)
    : has_accuracy_(config.options.train_accuracy && !config.options.forward_only),
      step_(build_step(graph_, config, threads.groups)) {
  SessionOptions options;
  options.seed = config.seed();
  options.compile = compile_options(config);
  options.compile.inter_threads = threads.inter_threads;
  // Groups synchronize before every update: make updates few and large.
  if (threads.groups > 1) options.compile.update_bytes = kSplitUpdateBytes;
  options.groups = threads.groups;
  options.own_statistics = config.batch_norm_over == BatchNormOver::group;
  options.start_thread = [threads](int index) { perf::apply(threads, index); };
  if (replicas != nullptr) {
    options.compile.update_bytes = bucket_bytes_for(config.distribution, trainable_bytes(graph_));
    replicas->configure(graph_, options);
  }
  const PipelineConfig& pipeline = config.distribution.pipeline;
  if (pipeline.is_used()) {
    options.compile.stages = stage_options(pipeline, graph_, step_.fetches, backend, rank);
    options.compile.state_shards = config.distribution.state_shards(pipeline.place_of(rank).replicas);
  }
  session_ = std::make_unique<Session>(graph_, backend, options);
  try {
    split_ = &session_->prepare_split(step_.fetches);
  } catch (const OutOfMemory& error) {
    const auto fitting = static_cast<std::int64_t>(error.fitting_share() * static_cast<double>(config.batch_size));
    bad_input("--batch-size {}: {}; {}, --recompute cheap or full uses less", config.batch_size, error.what(),
              fitting > 0 ? fmt::format("about {} images fit", fitting) : "not even one image fits");
  }
  if (link != nullptr) executable().set_link(link);
  if (restore) restore(*session_);
  if (replicas != nullptr) replicas->attach(*session_, *split_);
  fill_batch(config, rank);
}

// tf_cnn_benchmarks' synthetic images: truncated normal, mean 127, standard deviation 60, made once. There they stand
// for preprocessed pixels; here they are scaled like preprocessing does, x/127.5 - 1, so that the network sees values
// of the intended size. Programs do not modify placeholders, so the batch is set once for all steps. The workers'
// batches together equal the batch one worker would have.
void PreparedStep::fill_batch(const StepConfig& config, int rank) {
  const std::int64_t samples = config.images_per_run(), share = samples / groups();
  const PipelineConfig& pipeline = config.distribution.pipeline;
  const std::int64_t first_sample = pipeline.is_used() ? 0 : rank * samples;
  for (int index = 0; index < groups(); ++index) {
    Executable& group = split_->group(index);
    group.sample_offset = first_sample + index * share;
    const auto input = [&group](Tensor placeholder) {
      return group.needs(placeholder) ? group.input_f32(placeholder) : std::span<float>();
    };
    image_inputs_.push_back(input(model().images));
    label_inputs_.push_back(group.needs(model().labels) ? group.input_i32(model().labels) : std::span<std::int32_t>());
    if (trains() && group.needs(step_.learning_rate)) learning_rate_inputs_.push_back(input(step_.learning_rate));
  }
  std::vector<float> images(model().images.shape().elements() * groups());
  std::vector<std::int32_t> labels(samples);
  for (int run = 0; run < micro_batches(); ++run) {
    std::int64_t batch = rank;
    if (pipeline.is_used()) {
      const PipelineShape::Place place = pipeline.place_of(rank);
      batch = run * place.replicas + place.replica;
    }
    fill_truncated_normal(images, 127.0f, 60.0f, random_key(config.seed(), "synthetic images"),
                          static_cast<std::uint64_t>(batch) * images.size());
    for (float& value : images) value = value / 127.5f - 1.0f;
    fill_uniform(labels, static_cast<std::int32_t>(model().info.classes - 1),
                 random_key(config.seed(), "synthetic labels"), static_cast<std::uint64_t>(batch * samples));
    set_batch(images, labels, run);
  }
}

void PreparedStep::set_batch(std::span<const float> images, std::span<const std::int32_t> labels, int micro_batch) {
  const auto part_of = [this, micro_batch](auto input, int group) {
    const std::size_t size = input.size() / static_cast<std::size_t>(micro_batches());
    return std::pair(input.subspan(static_cast<std::size_t>(micro_batch) * size, size),
                     static_cast<std::size_t>(group) * size);
  };
  for (int index = 0; index < groups(); ++index) {
    Executable& group = split_->group(index);
    if (group.needs(model().images)) group.input_changed(model().images);
    if (group.needs(model().labels)) group.input_changed(model().labels);
    const auto [own_images, first_value] = part_of(image_inputs_[index], index);
    const auto [own_labels, first_label] = part_of(label_inputs_[index], index);
    std::ranges::copy(images.subspan(first_value, own_images.size()), own_images.begin());
    std::ranges::copy(labels.subspan(first_label, own_labels.size()), own_labels.begin());
    if (micro_batch + 1 == micro_batches()) group.send_inputs();
  }
}

void PreparedStep::set_first_sample(std::int64_t first) {
  for (int index = 0; index < groups(); ++index) {
    split_->group(index).sample_offset = first + index * static_cast<std::int64_t>(label_inputs_[index].size());
  }
}

double PreparedStep::run(double learning_rate) {
  start(learning_rate);
  wait();
  return knows_loss() ? loss() : 0;
}

void PreparedStep::start(double learning_rate) {
  for (const std::span<float> input : learning_rate_inputs_) {
    const auto rate = static_cast<float>(learning_rate);
    if (input[0] == rate) continue;
    for (int index = 0; index < groups(); ++index) split_->group(index).input_changed(step_.learning_rate);
    input[0] = rate;
  }
  split_->run();
}

double PreparedStep::wait() {
  double seconds = 0;
  for (int index = 0; index < groups(); ++index) seconds = std::max(seconds, split_->group(index).wait());
  return seconds;
}

std::optional<double> PreparedStep::accuracy() const {
  return has_accuracy_ && knows_loss() ? std::optional<double>(split_->mean_output(1)) : std::nullopt;
}

std::optional<LossScaleState> PreparedStep::loss_scale() const {
  if (!step_.loss_scale) return std::nullopt;
  const auto value = [this](Tensor variable) { return session_->variables().get(variable.node).f32()[0]; };
  return LossScaleState{.scale = value(step_.loss_scale->scale),
                        .skipped_updates = static_cast<std::int64_t>(value(step_.loss_scale->skipped_updates))};
}

void PreparedStep::enable_profile() {
  for (int index = 0; index < groups(); ++index) split_->group(index).enable_profile();
}

void PreparedStep::set_recorder(perf::Recorder& recorder) {
  for (int index = 0; index < groups(); ++index) split_->group(index).set_recorder(recorder);
}

double PreparedStep::flops() const {
  const Program& program = executable().program();
  double updates = 0;  // divided among the groups
  for (const Instruction& instruction : program.instructions) {
    if (instruction.update && !instruction.once) updates += instruction.cost.flops;
  }
  return groups() * (program.flops() - updates) + updates;
}

MemorySummary PreparedStep::memory() const {
  MemorySummary memory = executable().program().memory;
  for (std::int64_t* bytes : {&memory.planned_bytes, &memory.unplanned_bytes, &memory.peak_live_bytes,
                              &memory.scratch_bytes, &memory.gradient_bytes}) {
    *bytes *= groups();
  }
  return memory;
}

}  // namespace trireme::train
