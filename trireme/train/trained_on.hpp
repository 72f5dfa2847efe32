// What a network was trained on and how its images were preprocessed, stored in checkpoints. With it, training
// continues on the same data, `trireme eval` preprocesses like training's evaluation, and exported files say how to use
// them.
//
// Metadata: data_samples, data_classes, data_channels, data_height, data_width, data_hash; class_names (a JSON list);
// crop, eval_crop, augment, mean, std (like the options of these names).
#pragma once

#include <optional>

#include "trireme/data/choose_preprocessing.hpp"
#include "trireme/train/safetensors.hpp"

namespace trireme::train {

struct TrainedOn {
  std::int64_t samples = 0;
  std::int32_t classes = 0;  // 0: the data set does not say
  std::vector<std::string> class_names = {};
  data::Glimpse images = {};                      // height and width are 0 if they vary
  data::PreprocessingOptions preprocessing = {};  // complete
};

TrainedOn trained_on(const data::Dataset& dataset, const data::Glimpse& images,
                     const data::PreprocessingOptions& preprocessing);

Metadata to_metadata(const TrainedOn& data);
// Nothing if the metadata lack it (a checkpoint of an older version). Error(bad_input) if they are damaged.
std::optional<TrainedOn> trained_on(const Metadata& metadata);

// In words, why `now` is a different training set; empty: it is not.
std::string difference_in_training(const TrainedOn& before, const TrainedOn& now);
// Why images do not suit a network trained on the others: channels, size (if either is small), classes; or empty.
std::string difference_in_kind(const TrainedOn& before, const TrainedOn& now);

}  // namespace trireme::train
