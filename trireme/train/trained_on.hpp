// What a network was trained on and what was done to its images, as checkpoints keep it beside the values: by this
// training goes on with the same data, `trireme eval` does to images what training's evaluation did, and exported files
// say how to use them.
//
// Metadata: data_samples, data_classes, data_channels, data_height, data_width, data_hash; class_names (a JSON list);
// crop, eval_crop, augment, mean, std (as the options of these names).
#pragma once

#include <optional>

#include "trireme/data/choose_preprocessing.hpp"
#include "trireme/train/safetensors.hpp"

namespace trireme::train {

struct TrainedOn {
  std::int64_t samples = 0;
  std::int32_t classes = 0;  // 0: the data set does not say
  std::vector<std::string> class_names = {};
  data::Glimpse images = {};                      // height and width are 0 where they differ
  data::PreprocessingOptions preprocessing = {};  // all of it
};

TrainedOn trained_on(const data::Dataset& dataset, const data::Glimpse& images,
                     const data::PreprocessingOptions& preprocessing);

Metadata to_metadata(const TrainedOn& data);
// Nothing where the metadata do not say: a checkpoint of an older version. Error(bad_input) where they are damaged.
std::optional<TrainedOn> trained_on(const Metadata& metadata);

// In words, what makes `now` another data set to train on; empty: nothing.
std::string difference_in_training(const TrainedOn& before, const TrainedOn& now);
// Of images to evaluate, in words, what a network that was trained on the others cannot be meant for: their channels,
// their size where one of the two is small, their classes; empty: nothing.
std::string difference_in_kind(const TrainedOn& before, const TrainedOn& now);

}  // namespace trireme::train
