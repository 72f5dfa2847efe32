#include <array>
#include <cmath>
#include <numbers>

#include "trireme/base/error.hpp"
#include "trireme/data/drawn.hpp"
#include "trireme/data/draws.hpp"

namespace trireme::data {
namespace {

struct Point {
  float x = 0, y = 0;  // from the upper left; a digit fills most of the square from 0 to 1
};

using Stroke = std::vector<Point>;  // a line through its points

// Part of an ellipse; angles in degrees, from the right, clockwise as y goes down.
struct Arc {
  Point centre, radius;
  float from = 0, to = 360;
};

void add_arc(Stroke& stroke, const Arc& arc) {
  constexpr int kPieces = 14;
  for (int i = 0; i <= kPieces; ++i) {
    const float angle =
        (arc.from + (arc.to - arc.from) * static_cast<float>(i) / kPieces) * std::numbers::pi_v<float> / 180;
    stroke.push_back({arc.centre.x + arc.radius.x * std::cos(angle), arc.centre.y + arc.radius.y * std::sin(angle)});
  }
}

Stroke arc_stroke(const Arc& arc) {
  Stroke stroke;
  add_arc(stroke, arc);
  return stroke;
}

std::vector<Stroke> strokes_of(int digit) {
  switch (digit) {
    case 0:
      return {arc_stroke({{.5f, .5f}, {.27f, .4f}})};
    case 1:
      return {{{.34f, .26f}, {.54f, .1f}, {.54f, .9f}}};
    case 2: {
      Stroke stroke = arc_stroke({{.5f, .33f}, {.25f, .23f}, 190, 400});
      stroke.insert(stroke.end(), {{.24f, .9f}, {.78f, .9f}});
      return {stroke};
    }
    case 3: {
      Stroke stroke = arc_stroke({{.47f, .3f}, {.24f, .2f}, 200, 440});
      add_arc(stroke, {{.47f, .7f}, {.28f, .21f}, -80, 160});
      return {stroke};
    }
    case 4:
      return {{{.62f, .9f}, {.62f, .1f}, {.2f, .64f}, {.82f, .64f}}};
    case 5: {
      Stroke stroke{{.74f, .12f}, {.34f, .12f}, {.3f, .46f}};
      add_arc(stroke, {{.47f, .66f}, {.28f, .24f}, -130, 150});
      return {stroke};
    }
    case 6: {
      Stroke stroke{{.68f, .1f}, {.45f, .25f}, {.3f, .5f}};
      add_arc(stroke, {{.5f, .68f}, {.23f, .22f}, 180, 540});
      return {stroke};
    }
    case 7:
      return {{{.22f, .12f}, {.78f, .12f}, {.42f, .9f}}};
    case 8:
      return {arc_stroke({{.5f, .3f}, {.21f, .19f}}), arc_stroke({{.5f, .69f}, {.26f, .21f}})};
    default: {
      Stroke stroke = arc_stroke({{.5f, .33f}, {.23f, .22f}});
      stroke.insert(stroke.end(), {{.71f, .6f}, {.58f, .9f}});
      return {stroke};
    }
  }
}

// How one sample's strokes differ from the model: bent by waves, then turned, sheared, scaled and moved.
class Distortion {
 public:
  explicit Distortion(Draws& draws) {
    const float turn = draws.around(0, 0.14f), shear = draws.around(0, 0.16f);
    const float wide = draws.between(.66f, 1.0f), high = draws.between(.7f, 1.0f);
    xx_ = wide * std::cos(turn);
    xy_ = high * (shear - std::sin(turn));
    yx_ = wide * std::sin(turn);
    yy_ = high * std::cos(turn);
    move_ = {draws.between(-.11f, .11f), draws.between(-.11f, .11f)};
    for (Wave& wave : waves_) wave = {draws.between(0, .045f), draws.between(3, 8), draws.between(0, 6.28f)};
  }

  Point operator()(Point point) const {
    const float x = point.x + waves_[0].at(point.y) - .5f, y = point.y + waves_[1].at(point.x) - .5f;
    return {.5f + xx_ * x + xy_ * y + move_.x, .5f + yx_ * x + yy_ * y + move_.y};
  }

 private:
  struct Wave {
    float height = 0, frequency = 0, phase = 0;
    float at(float position) const { return height * std::sin(frequency * position + phase); }
  };
  float xx_, xy_, yx_, yy_;
  Point move_;
  std::array<Wave, 2> waves_;
};

float distance_to_segment(Point p, Point a, Point b) {
  const float dx = b.x - a.x, dy = b.y - a.y;
  const float length = dx * dx + dy * dy;
  const float along = length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0f, 1.0f) : 0.0f;
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

// Ink from 0 to 1 on a sheet of pixels.
class Sheet {
 public:
  Sheet(int height, int width) : height_(height), width_(width), ink_(height * width) {}

  // Radius and points in pixels.
  void draw(Point a, Point b, float radius) {
    const float reach = radius + 1;
    const int top = std::max(0, static_cast<int>(std::min(a.y, b.y) - reach));
    const int bottom = std::min(height_ - 1, static_cast<int>(std::max(a.y, b.y) + reach));
    const int left = std::max(0, static_cast<int>(std::min(a.x, b.x) - reach));
    const int right = std::min(width_ - 1, static_cast<int>(std::max(a.x, b.x) + reach));
    for (int y = top; y <= bottom; ++y) {
      for (int x = left; x <= right; ++x) {
        const Point middle{static_cast<float>(x) + .5f, static_cast<float>(y) + .5f};
        float& ink = ink_[y * width_ + x];
        ink = std::max(ink, std::clamp(radius + .5f - distance_to_segment(middle, a, b), 0.0f, 1.0f));
      }
    }
  }

  const std::vector<float>& ink() const { return ink_; }

 private:
  int height_, width_;
  std::vector<float> ink_;
};

class DrawnDigits final : public Dataset {
 public:
  explicit DrawnDigits(const DrawnOptions& options)
      : samples_(options.samples), key_(random_key(options.seed, fmt::format("digits {}", to_string(options.split)))) {
    info_ = {.format = "drawn",
             .classes = options.classes,
             .class_names = {},
             .height = options.height,
             .width = options.width,
             .channels = 1};
    for (int digit = 0; digit < options.classes; ++digit) {
      info_.class_names.push_back(std::to_string(digit));
      models_.push_back(strokes_of(digit));
    }
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return samples_; }
  std::string where(std::int64_t index) const override { return fmt::format("drawn digit {}", index); }

  void read(std::int64_t index, Sample& sample) const override {
    Draws draws(key_, index);
    sample.encoding = Encoding::pixels;
    sample.height = info_.height;
    sample.width = info_.width;
    sample.channels = 1;
    sample.label = static_cast<std::int32_t>(index % info_.classes);
    sample.boxes.clear();
    sample.class_text.clear();
    const Sheet sheet = draw(sample.label, draws);
    const float ink = draws.between(150, 255), ground = draws.between(0, 30), noise = draws.between(2, 16);
    sample.bytes.resize(sheet.ink().size());
    std::transform(sheet.ink().begin(), sheet.ink().end(), sample.bytes.begin(),
                   [&](float value) { return to_byte(draws.around(ground + (ink - ground) * value, noise)); });
  }

 private:
  Sheet draw(std::int32_t label, Draws& draws) const {
    const Distortion distortion(draws);
    const auto height = static_cast<float>(info_.height), width = static_cast<float>(info_.width);
    const float radius = draws.between(.025f, .06f) * std::min(height, width);
    Sheet sheet(info_.height, info_.width);
    for (const Stroke& stroke : models_[label]) {
      Point previous;
      for (std::size_t i = 0; i < stroke.size(); ++i) {
        Point point = distortion(stroke[i]);
        point = {point.x * width, point.y * height};
        if (i > 0) sheet.draw(previous, point, radius);
        previous = point;
      }
    }
    return sheet;
  }

  std::int64_t samples_;
  std::uint64_t key_;
  DatasetInfo info_;
  std::vector<std::vector<Stroke>> models_;  // by label
};

}  // namespace

std::shared_ptr<const Dataset> draw_digits(const DrawnOptions& options) {
  if (options.classes < 2 || options.classes > kMostDigits) {
    bad_input("{} classes of digits; there are 2 to {}", options.classes, kMostDigits);
  }
  return std::make_shared<DrawnDigits>(options);
}

}  // namespace trireme::data
