#include "trireme/train/evaluation_data.hpp"

#include <set>
#include <string>

#include "trireme/base/error.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/train/data_input.hpp"

namespace trireme::train {

EvaluationData open_evaluation_data(const DataConfig& config, const Network& model, std::int64_t batch_size) {
  EvaluationData evaluation;
  data::OpenOptions open{.name = config.name, .split = data::Split::validation};
  if (config.max_bad_records > 0) open.on_broken_file = say_passed_over;
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
  pipeline.replace_bad = false;  // each image counts once, or not at all
  // With every evaluation comes a pipeline, and with it the broken ones again.
  pipeline.on_bad_sample = [said = std::make_shared<std::set<std::string>>()](const std::string& problem) {
    if (said->insert(problem).second) say_passed_over(problem);
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
    fail(ErrorKind::failed, "none of the {} validation images is good", all.broken);
  }
  return {.accuracy = all};
}

}  // namespace trireme::train
