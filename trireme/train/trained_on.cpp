#include "trireme/train/trained_on.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"

namespace trireme::train {
namespace {

constexpr const char* kFirstKey = "data_samples";  // first of the keys that are all present or all absent

std::vector<std::string> parse_list(const std::string& text) {
  try {
    return nlohmann::json::parse(text).get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    bad_input("the checkpoint is damaged: '{}' is not a list of names", text);
  }
}

// Folder names may have any encoding; invalid UTF-8 is replaced for JSON.
std::string as_json(const std::vector<std::string>& names) {
  return nlohmann::json(names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string size_text(const data::Glimpse& images) {
  return images.height > 0 ? fmt::format("{}x{}", images.height, images.width) : "several sizes";
}

std::string colours(const data::Glimpse& images) { return images.channels == 1 ? "grey" : "coloured"; }

bool are_small(const data::Glimpse& images) {
  return images.height > 0 && std::max(images.height, images.width) <= data::kLargestSmallImage;
}

bool same_size(const data::Glimpse& a, const data::Glimpse& b) { return a.height == b.height && a.width == b.width; }

// Compares what both know.
std::string difference_in_classes(const TrainedOn& before, const TrainedOn& now) {
  if (before.classes > 0 && now.classes > 0 && before.classes != now.classes) {
    return fmt::format("{} classes, but these have {}", before.classes, now.classes);
  }
  if (before.class_names.empty() || now.class_names.empty()) return "";
  for (std::size_t i = 0; i < std::min(before.class_names.size(), now.class_names.size()); ++i) {
    if (before.class_names[i] == now.class_names[i]) continue;
    return fmt::format("class {} was '{}', but here it is '{}'", i, before.class_names[i], now.class_names[i]);
  }
  return "";
}

}  // namespace

TrainedOn trained_on(const data::Dataset& dataset, const data::Glimpse& images,
                     const data::PreprocessingOptions& preprocessing) {
  TrainedOn data{.samples = dataset.size(),
                 .classes = dataset.info().classes,
                 .class_names = dataset.info().class_names,
                 .images = images,
                 .preprocessing = preprocessing};
  data.class_names = parse_list(as_json(data.class_names));
  if (!images.same_size) data.images.height = data.images.width = 0;
  return data;
}

Metadata to_metadata(const TrainedOn& data) {
  const data::PreprocessingOptions& done = data.preprocessing;
  return {{kFirstKey, std::to_string(data.samples)},
          {"data_classes", std::to_string(data.classes)},
          {"data_channels", std::to_string(data.images.channels)},
          {"data_height", std::to_string(data.images.height)},
          {"data_width", std::to_string(data.images.width)},
          {"data_hash", fmt::format("{:016x}", data.images.hash)},
          {"class_names", as_json(data.class_names)},
          {"crop", std::string(data::to_string(done.crop.value()))},
          {"eval_crop", std::string(data::to_string(done.eval_crop.value()))},
          {"augment", data::to_string(done.augment.value())},
          {"mean", data::to_string(done.mean)},
          {"std", data::to_string(done.deviation)}};
}

std::optional<TrainedOn> trained_on(const Metadata& metadata) {
  if (!metadata.contains(kFirstKey)) return std::nullopt;
  MetadataReader reader("the checkpoint", metadata);
  TrainedOn data;
  data.samples = reader.number<std::int64_t>(kFirstKey);
  data.classes = reader.number<std::int32_t>("data_classes");
  data.class_names = parse_list(reader.text("class_names"));
  data.images.channels = reader.number<int>("data_channels");
  data.images.height = reader.number<int>("data_height");
  data.images.width = reader.number<int>("data_width");
  data.images.same_size = data.images.height > 0;
  data.images.hash = reader.number<std::uint64_t>("data_hash", 16);
  data.preprocessing = {.crop = data::parse_crop("crop", reader.text("crop"), true),
                        .eval_crop = data::parse_crop("eval-crop", reader.text("eval_crop"), false),
                        .augment = data::parse_augment(reader.text("augment"), false),
                        .mean = data::parse_mean(reader.text("mean")),
                        .deviation = data::parse_deviation(reader.text("std"))};
  return data;
}

std::string difference_in_training(const TrainedOn& before, const TrainedOn& now) {
  if (before.samples != now.samples) {
    return fmt::format("{} images, but there are {} here", format_count(before.samples), format_count(now.samples));
  }
  if (std::string classes = difference_in_classes(before, now); !classes.empty()) return classes;
  if (before.images.channels != now.images.channels) {
    return fmt::format("{} images, but these are {}", colours(before.images), colours(now.images));
  }
  if (!same_size(before.images, now.images)) {
    return fmt::format("images of {}, but these have {}", size_text(before.images), size_text(now.images));
  }
  if (before.images.hash != now.images.hash) return "as many images, but different ones";
  return "";
}

std::string difference_in_kind(const TrainedOn& before, const TrainedOn& now) {
  if (before.images.channels == 1 && now.images.channels == 3) {  // the reverse, grayscale photographs, is fine
    return fmt::format("{} images of {}, but these are {}, of {}", colours(before.images), size_text(before.images),
                       colours(now.images), size_text(now.images));
  }
  const bool know_size = before.images.height > 0 && now.images.height > 0;  // else sizes vary
  if (know_size && !same_size(before.images, now.images) && (are_small(before.images) || are_small(now.images))) {
    return fmt::format("images of {}, but these have {}", size_text(before.images), size_text(now.images));
  }
  return difference_in_classes(before, now);
}

}  // namespace trireme::train
