#include "trireme/data/tfrecord/example.hpp"

#include <algorithm>
#include <cctype>
#include <limits>

#include "trireme/base/error.hpp"
#include "trireme/data/tfrecord/example.pb.h"

namespace trireme::data {
namespace {

// What an Example holds under the keys that matter; null: the key is missing.
struct Found {
  const pb::Feature *encoded = nullptr, *label = nullptr, *format = nullptr, *text = nullptr;
  const pb::Feature *top = nullptr, *left = nullptr, *bottom = nullptr, *right = nullptr;
};

Found find_features(const pb::Example& example) {
  Found found;
  for (const pb::FeatureEntry& entry : example.features().feature()) {
    const std::string& key = entry.key();
    const pb::Feature* value = &entry.value();
    if (key == "image/encoded") found.encoded = value;
    if (key == "image/class/label") found.label = value;
    if (key == "image/class/text") found.text = value;
    if (key == "image/format") found.format = value;
    if (key == "image/object/bbox/ymin") found.top = value;
    if (key == "image/object/bbox/xmin") found.left = value;
    if (key == "image/object/bbox/ymax") found.bottom = value;
    if (key == "image/object/bbox/xmax") found.right = value;
  }
  return found;
}

bool is_jpeg(std::string format) {
  std::transform(format.begin(), format.end(), format.begin(), [](unsigned char c) { return std::tolower(c); });
  return format == "jpeg" || format == "jpg";
}

void read_image(const Found& found, std::string_view where, Sample& sample) {
  if (found.encoded == nullptr || found.encoded->bytes_list().value_size() != 1) {
    fail(ErrorKind::failed, "{}: the key image/encoded is missing, or does not hold one string", where);
  }
  if (found.format != nullptr && found.format->bytes_list().value_size() == 1) {
    const std::string& format = found.format->bytes_list().value(0);
    if (!is_jpeg(format)) fail(ErrorKind::failed, "{}: image/format is '{}'; only JPEG can be read", where, format);
  }
  const std::string& encoded = found.encoded->bytes_list().value(0);
  const auto bytes = std::as_bytes(std::span(encoded));
  sample.encoding = Encoding::jpeg;
  sample.bytes.assign(bytes.begin(), bytes.end());
  sample.height = sample.width = sample.channels = 0;
}

void read_label(const Found& found, std::string_view where, Sample& sample) {
  if (found.label == nullptr || found.label->int64_list().value_size() != 1) {
    fail(ErrorKind::failed, "{}: the key image/class/label is missing, or does not hold one integer", where);
  }
  const std::int64_t label = found.label->int64_list().value(0);
  if (label < 0 || label >= std::numeric_limits<std::int32_t>::max()) {
    fail(ErrorKind::failed, "{}: image/class/label is {}; labels are 0 or more", where, label);
  }
  sample.label = static_cast<std::int32_t>(label);
  const bool is_named = found.text != nullptr && found.text->bytes_list().value_size() == 1;
  sample.class_text = is_named ? found.text->bytes_list().value(0) : "";
}

void read_boxes(const Found& found, std::string_view where, Sample& sample) {
  sample.boxes.clear();
  const auto values = [](const pb::Feature* feature) -> const auto& {
    return (feature == nullptr ? pb::Feature::default_instance() : *feature).float_list().value();
  };
  const auto &top = values(found.top), &left = values(found.left);
  const auto &bottom = values(found.bottom), &right = values(found.right);
  if (left.size() != top.size() || bottom.size() != top.size() || right.size() != top.size()) {
    fail(ErrorKind::failed, "{}: image/object/bbox/ has {} ymin, {} xmin, {} ymax, {} xmax; as many of each are needed",
         where, top.size(), left.size(), bottom.size(), right.size());
  }
  const auto share = [](float value) { return std::clamp(value, 0.0f, 1.0f); };
  for (int i = 0; i < top.size(); ++i) {
    const Box box{share(top[i]), share(left[i]), share(bottom[i]), share(right[i])};
    // People drew these: some have no area, which says nothing about the image.
    if (box.top < box.bottom && box.left < box.right) sample.boxes.push_back(box);
  }
}

class ExampleBuilder {
 public:
  void add(const char* key, std::string value) { value_of(key).mutable_bytes_list()->add_value(std::move(value)); }
  void add(const char* key, std::int64_t value) { value_of(key).mutable_int64_list()->add_value(value); }
  void add_shares(const char* key, std::span<const Box> boxes, float Box::*side) {
    pb::FloatList& list = *value_of(key).mutable_float_list();
    for (const Box& box : boxes) list.add_value(box.*side);
  }
  std::string text() const { return example_.SerializeAsString(); }

 private:
  pb::Feature& value_of(const char* key) {
    pb::FeatureEntry* entry = example_.mutable_features()->add_feature();
    entry->set_key(key);
    return *entry->mutable_value();
  }
  pb::Example example_;
};

}  // namespace

ExampleParser::ExampleParser() : example_(std::make_unique<pb::Example>()) {}
ExampleParser::~ExampleParser() = default;

void ExampleParser::parse(std::span<const std::byte> record, std::string_view where, Sample& sample) {
  if (record.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      !example_->ParseFromArray(record.data(), static_cast<int>(record.size()))) {
    fail(ErrorKind::failed, "{}: the record is no tf.Example", where);
  }
  const Found found = find_features(*example_);
  read_image(found, where, sample);
  read_label(found, where, sample);
  read_boxes(found, where, sample);
}

std::string serialize_example(const ExampleImage& image) {
  ExampleBuilder builder;
  builder.add("image/height", image.height);
  builder.add("image/width", image.width);
  builder.add("image/colorspace", image.channels == 1 ? "Gray" : "RGB");
  builder.add("image/channels", image.channels);
  builder.add("image/class/label", image.label);
  builder.add("image/class/text", image.class_name);
  builder.add_shares("image/object/bbox/ymin", image.boxes, &Box::top);
  builder.add_shares("image/object/bbox/xmin", image.boxes, &Box::left);
  builder.add_shares("image/object/bbox/ymax", image.boxes, &Box::bottom);
  builder.add_shares("image/object/bbox/xmax", image.boxes, &Box::right);
  builder.add("image/format", "JPEG");
  builder.add("image/filename", image.file_name);
  builder.add("image/encoded", std::string(reinterpret_cast<const char*>(image.jpeg.data()), image.jpeg.size()));
  return builder.text();
}

}  // namespace trireme::data
