#include "trireme/train/evaluator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "trireme/base/error.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/runtime/batch_split.hpp"
#include "trireme/runtime/variable_store.hpp"
#include "trireme/train/data_input.hpp"

namespace trireme::train {
namespace {

constexpr std::int64_t kTop = 5;

}  // namespace

void Accuracy::add(const Accuracy& other) {
  samples += other.samples;
  top1 += other.top1;
  top5 += other.top5;
  loss += other.loss;
  broken += other.broken;
}

// A label's rank is the number of likelier classes; of equally likely ones the first wins.
Accuracy count_correct(std::span<const float> logits, std::span<const std::int32_t> labels, std::int64_t classes) {
  Accuracy counted;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0) continue;
    const std::span<const float> row = logits.subspan(i * static_cast<std::size_t>(classes), classes);
    const auto label = static_cast<std::size_t>(labels[i]);
    const float own = row[label];
    const float largest = *std::max_element(row.begin(), row.end());
    std::int64_t better = 0;
    double sum = 0;
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (row[c] > own || (row[c] == own && c < label)) ++better;
      sum += std::exp(static_cast<double>(row[c]) - largest);
    }
    ++counted.samples;
    counted.top1 += better < 1 ? 1 : 0;
    counted.top5 += better < kTop ? 1 : 0;
    counted.loss += std::log(sum) + largest - own;
  }
  return counted;
}

Evaluator::Evaluator(const Options& options, const Backend& backend)
    : model_(build_model(graph_, options.model,
                         {.batch_size = options.batch_size / options.session.groups,
                          .num_classes = options.classes,
                          .training = false})),
      session_(std::make_unique<Session>(graph_, backend, options.session)) {
  forward_ = &session_->prepare_split(std::array{model_.logits});
}

void Evaluator::load(const std::function<HostTensor(const Node& variable)>& value_of) {
  for (const NodeId id : graph_.variables()) session_->variables().set(id, value_of(graph_.node(id)));
}

void Evaluator::load(const VariableStore& trained) {
  load([&trained](const Node& variable) { return trained.get(trained.find(variable.name)); });
}

std::optional<Accuracy> Evaluator::run(data::Pipeline& pipeline, const std::stop_token& stop,
                                       const OnProgress& on_progress) {
  const auto share = static_cast<std::size_t>(model_.labels.shape().elements());
  const auto pixels = static_cast<std::size_t>(model_.images.shape().elements());
  Accuracy all;
  while (true) {
    const data::Batch& batch = pipeline.next();
    all.broken = static_cast<std::int64_t>(pipeline.bad_samples().size());
    if (on_progress) on_progress(all.samples + all.broken);
    if (batch.valid == 0) return all;
    if (stop.stop_requested()) return std::nullopt;
    for (int i = 0; i < forward_->groups(); ++i) {
      const std::span<const float> images = batch.images.subspan(static_cast<std::size_t>(i) * pixels, pixels);
      std::copy(images.begin(), images.end(), forward_->group(i).input_f32(model_.images).begin());
    }
    forward_->run();
    for (int i = 0; i < forward_->groups(); ++i) {
      all.add(count_correct(forward_->group(i).output(0),
                            batch.labels.subspan(static_cast<std::size_t>(i) * share, share), model_.info.classes));
    }
  }
}

EvaluationData open_evaluation_data(const DataConfig& config, const Network& model, std::int64_t batch_size) {
  EvaluationData evaluation;
  data::OpenOptions open{.name = config.name, .split = data::Split::validation};
  if (config.max_bad_records > 0) open.on_broken_file = report_skipped;
  evaluation.dataset = data::open_dataset(config.dir, open);
  evaluation.images = data::glimpse(*evaluation.dataset);
  data::PipelineOptions& pipeline = evaluation.pipeline;
  pipeline.batch_size = batch_size;
  pipeline.shuffle = false;
  pipeline.end = evaluation.dataset->size();
  pipeline.classes = static_cast<std::int32_t>(model.classes);
  pipeline.preprocessing = data::preprocessing_for(evaluation.images, static_cast<int>(model.image_size),
                                                   static_cast<int>(model.channels), false, config.preprocessing);
  pipeline.threads = config.threads;
  pipeline.prefetch = config.prefetch;
  pipeline.max_bad_samples = config.max_bad_records;
  pipeline.replace_bad = false;  // each image counts at most once
  // Every evaluation makes a new pipeline, which finds the same broken samples: report each once.
  pipeline.on_bad_sample = [reported = std::make_shared<std::set<std::string>>()](const std::string& problem) {
    if (reported->insert(problem).second) report_skipped(problem);
  };
  return evaluation;
}

Evaluation added_up(std::span<const std::optional<Accuracy>> workers) {
  Accuracy all;
  for (const std::optional<Accuracy>& each : workers) {
    if (!each) return {.accuracy = std::nullopt, .stopped = true};
    all.add(*each);
  }
  if (all.samples == 0 && all.broken > 0) {
    fail(ErrorKind::failed, "all {} validation images are broken", all.broken);
  }
  return {.accuracy = all};
}

}  // namespace trireme::train
