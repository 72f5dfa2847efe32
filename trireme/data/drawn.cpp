#include "trireme/data/drawn.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "trireme/base/error.hpp"
#include "trireme/data/draws.hpp"

namespace trireme::data {
namespace {

std::byte to_byte(float value) { return static_cast<std::byte>(std::clamp(value, 0.0f, 255.0f)); }

class Drawn : public Dataset {
 public:
  // what: "digit" or "shape".
  Drawn(const DrawnOptions& options, std::string what, int channels)
      : key_(random_key(options.seed, fmt::format("{}s {}", what, to_string(options.split)))),
        samples_(options.samples),
        what_(std::move(what)) {
    info_ = {.format = "drawn",
             .classes = options.classes,
             .class_names = {},
             .height = options.height,
             .width = options.width,
             .channels = channels};
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return samples_; }
  std::string where(std::int64_t index) const override { return fmt::format("drawn {} {}", what_, index); }

  void read(std::int64_t index, Sample& sample) const override {
    sample.set_pixels(info_.height, info_.width, info_.channels, static_cast<std::int32_t>(index % info_.classes));
    Draws draws(key_, index);
    draw(index, draws, sample);
  }

 protected:
  // Fills the bytes; may add a box.
  virtual void draw(std::int64_t index, Draws& draws, Sample& sample) const = 0;

  DatasetInfo info_;
  std::uint64_t key_;

 private:
  std::int64_t samples_;
  std::string what_;
};

struct Point {
  float x = 0, y = 0;  // from the upper left; a digit fills most of the unit square
};

using Stroke = std::vector<Point>;  // polyline

// Part of an ellipse; angles in degrees from the right, clockwise as y points down. Without a radius: a point.
struct Arc {
  Point centre, radius = {};
  float from = 0, to = 360;
};

Stroke stroke_of(const std::vector<Arc>& arcs) {
  constexpr int kPieces = 14;
  Stroke stroke;
  for (const Arc& arc : arcs) {
    for (int i = 0; i <= (arc.radius.x > 0 ? kPieces : 0); ++i) {
      const float angle =
          (arc.from + (arc.to - arc.from) * static_cast<float>(i) / kPieces) * std::numbers::pi_v<float> / 180;
      stroke.push_back({arc.centre.x + arc.radius.x * std::cos(angle), arc.centre.y + arc.radius.y * std::sin(angle)});
    }
  }
  return stroke;
}

std::vector<Stroke> strokes_of(int digit) {
  static const std::vector<std::vector<std::vector<Arc>>> kDigits{
      {{{{.5f, .5f}, {.27f, .4f}}}},
      {{{{.34f, .26f}}, {{.54f, .1f}}, {{.54f, .9f}}}},
      {{{{.5f, .33f}, {.25f, .23f}, 190, 400}, {{.24f, .9f}}, {{.78f, .9f}}}},
      {{{{.47f, .3f}, {.24f, .2f}, 200, 440}, {{.47f, .7f}, {.28f, .21f}, -80, 160}}},
      {{{{.62f, .9f}}, {{.62f, .1f}}, {{.2f, .64f}}, {{.82f, .64f}}}},
      {{{{.74f, .12f}}, {{.34f, .12f}}, {{.3f, .46f}}, {{.47f, .66f}, {.28f, .24f}, -130, 150}}},
      {{{{.68f, .1f}}, {{.45f, .25f}}, {{.3f, .5f}}, {{.5f, .68f}, {.23f, .22f}, 180, 540}}},
      {{{{.22f, .12f}}, {{.78f, .12f}}, {{.42f, .9f}}}},
      {{{{.5f, .3f}, {.21f, .19f}}}, {{{.5f, .69f}, {.26f, .21f}}}},
      {{{{.5f, .33f}, {.23f, .22f}}, {{.71f, .6f}}, {{.58f, .9f}}}},
  };
  std::vector<Stroke> strokes;
  for (const std::vector<Arc>& arcs : kDigits.at(digit)) strokes.push_back(stroke_of(arcs));
  return strokes;
}

// How one sample's strokes differ from the model: bent by waves, then rotated, sheared, scaled and moved.
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

// Ink from 0 to 1 on a grid of pixels.
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

class DrawnDigits final : public Drawn {
 public:
  explicit DrawnDigits(const DrawnOptions& options) : Drawn(options, "digit", 1) {
    for (int digit = 0; digit < options.classes; ++digit) {
      info_.class_names.push_back(std::to_string(digit));
      models_.push_back(strokes_of(digit));
    }
  }

 private:
  void draw(std::int64_t /*index*/, Draws& draws, Sample& sample) const override {
    const Sheet sheet = write(sample.label, draws);
    const float ink = draws.between(150, 255), ground = draws.between(0, 30), noise = draws.between(2, 16);
    std::transform(sheet.ink().begin(), sheet.ink().end(), sample.bytes.begin(),
                   [&](float value) { return to_byte(draws.around(ground + (ink - ground) * value, noise)); });
  }

  Sheet write(std::int32_t label, Draws& draws) const {
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

  std::vector<std::vector<Stroke>> models_;  // by label
};

constexpr int kKinds = 10;

// covers: whether the shape covers a point of the square from -1 to 1.
struct FigureKind {
  const char* name;
  bool (*covers)(float u, float v);
};

float radius_at(float u, float v) { return std::hypot(u, v); }
float side_at(float u, float v) { return std::max(std::abs(u), std::abs(v)); }

constexpr std::array<FigureKind, kKinds> kFigures{{
    {"disc", [](float u, float v) { return radius_at(u, v) < .95f; }},
    {"square", [](float u, float v) { return side_at(u, v) < .8f; }},
    {"triangle", [](float u, float v) { return v < .75f && v > 2 * std::abs(u) - .95f; }},
    {"ring", [](float u, float v) { return radius_at(u, v) < .95f && radius_at(u, v) > .6f; }},
    {"cross", [](float u, float v) { return side_at(u, v) < .95f && std::min(std::abs(u), std::abs(v)) < .28f; }},
    {"diamond", [](float u, float v) { return 1.7f * std::abs(u) + std::abs(v) < .98f; }},
    {"flower", [](float u, float v) { return radius_at(u, v) < .6f + .35f * std::cos(5 * std::atan2(v, u)); }},
    {"half-disc", [](float u, float v) { return radius_at(u, v) < .95f && v < 0; }},
    {"bars", [](float u, float v) { return std::abs(u) < .9f && std::abs(v) < .8f && std::abs(v) > .3f; }},
    {"frame", [](float u, float v) { return side_at(u, v) < .88f && side_at(u, v) > .55f; }},
}};

// strength: of a shape's second color at a point, 0 to 1.
struct Filling {
  const char* name;
  float (*strength)(float u, float v);
};

float if_so(bool condition) { return condition ? 1.0f : 0.0f; }
bool wave(float x) { return std::sin(x) > 0; }

constexpr std::array<Filling, kKinds> kFillings{{
    {"plain", [](float, float) { return 0.0f; }},
    {"striped", [](float, float v) { return if_so(wave(14 * v)); }},
    {"checked", [](float u, float v) { return if_so(wave(11 * u) == wave(11 * v)); }},
    {"dotted", [](float u, float v) { return if_so(std::hypot(std::sin(9 * u), std::sin(9 * v)) < .6f); }},
    {"shaded", [](float u, float) { return (u + 1) / 2; }},
    {"ringed", [](float u, float v) { return if_so(wave(20 * std::hypot(u, v))); }},
    {"wavy", [](float u, float v) { return if_so(wave(14 * v + 2 * std::sin(6 * u))); }},
    {"grid", [](float u, float v) { return if_so(side_at(std::sin(8 * u), std::sin(8 * v)) > .93f); }},
    {"rayed", [](float u, float v) { return if_so(wave(9 * std::atan2(v, u))); }},
    {"split", [](float u, float) { return if_so(u > 0); }},
}};

using Colour = std::array<float, 3>;

Colour random_colour(Draws& draws) { return {draws.between(20, 235), draws.between(20, 235), draws.between(20, 235)}; }

Colour mixed(const Colour& a, const Colour& b, float share) {
  Colour colour;
  for (std::size_t c = 0; c < 3; ++c) colour[c] = a[c] + (b[c] - a[c]) * share;
  return colour;
}

float difference(const Colour& a, const Colour& b) {
  return std::abs(a[0] - b[0]) + std::abs(a[1] - b[1]) + std::abs(a[2] - b[2]);
}

// Two colors mixed by two waves across the picture.
class Background {
 public:
  Background(Draws& draws, float pixels) : dark_(random_colour(draws)), light_(random_colour(draws)) {
    for (Wave& wave : waves_) {
      const float angle = draws.between(0, std::numbers::pi_v<float>), frequency = draws.between(6, 60) / pixels;
      wave = {frequency * std::cos(angle), frequency * std::sin(angle), draws.between(0, 6.28f)};
    }
  }
  Colour at(float x, float y) const {
    return mixed(dark_, light_, .5f + .25f * (waves_[0].at(x, y) + waves_[1].at(x, y)));
  }
  Colour middle() const { return mixed(dark_, light_, .5f); }

 private:
  struct Wave {
    float across = 0, down = 0, phase = 0;
    float at(float x, float y) const { return std::sin(across * x + down * y + phase); }
  };
  Colour dark_, light_;
  std::array<Wave, 2> waves_;
};

class Figure {
 public:
  Figure(int figure, int filling, Draws& draws, const Colour& behind) : figure_(figure), filling_(filling) {
    do {
      colour_ = random_colour(draws);
    } while (difference(colour_, behind) < 150);
    second_ = mixed(colour_, {255 - colour_[0], 255 - colour_[1], 255 - colour_[2]}, .7f);
    const float turn = draws.around(0, .12f);
    cos_ = std::cos(turn);
    sin_ = std::sin(turn);
    stretch_ = draws.between(.85f, 1.18f);
  }
  void place(float x, float y, float radius) {
    x_ = x;
    y_ = y;
    radius_ = radius;
  }
  // Does not change the color outside the shape.
  void draw(float x, float y, Colour& colour) const {
    const float dx = (x - x_) / radius_, dy = (y - y_) / radius_;
    if (std::abs(dx) > 1.5f || std::abs(dy) > 1.5f) return;
    const float u = (cos_ * dx + sin_ * dy) * stretch_, v = (cos_ * dy - sin_ * dx) / stretch_;
    if (kFigures[figure_].covers(u, v)) colour = mixed(colour_, second_, kFillings[filling_].strength(u, v));
  }
  Box box(float height, float width) const {
    const auto share = [](float value, float whole) { return std::clamp(value / whole, 0.0f, 1.0f); };
    return {share(y_ - radius_, height), share(x_ - radius_, width), share(y_ + radius_, height),
            share(x_ + radius_, width)};
  }

 private:
  int figure_, filling_;
  Colour colour_, second_;
  float cos_, sin_, stretch_, x_ = 0, y_ = 0, radius_ = 1;
};

class DrawnShapes final : public Drawn {
 public:
  explicit DrawnShapes(const DrawnOptions& options) : Drawn(options, "shape", 3) {
    for (int label = 0; label < options.classes; ++label) info_.class_names.push_back(name_of(label, options.classes));
  }

 private:
  void draw(std::int64_t index, Draws& draws, Sample& sample) const override {
    paint(draws, sample);
    add_noise(draws, index, sample);
  }

  static std::string name_of(int label, int classes) {
    std::string name = kFigures[label % kKinds].name;
    if (classes > kKinds) name += fmt::format("-{}", kFillings[label / kKinds % kKinds].name);
    if (classes > kKinds * kKinds) name += fmt::format("-{}", kFigures[label / kKinds / kKinds].name);
    return name;
  }

  void paint(Draws& draws, Sample& sample) const {
    const auto height = static_cast<float>(info_.height), width = static_cast<float>(info_.width);
    const float side = std::min(height, width);
    const Background background(draws, side);
    Figure first(sample.label % kKinds, sample.label / kKinds % kKinds, draws, background.middle());
    const float radius = draws.between(.22f, .36f) * side;
    first.place(draws.between(radius, width - radius), draws.between(radius, height - radius), radius);
    // The second shape is in a corner, drawn over the first if they overlap.
    Figure second(sample.label / kKinds / kKinds, 0, draws, background.middle());
    const float small = .1f * side;
    second.place(draws.below(2) == 0 ? small : width - small, draws.below(2) == 0 ? small : height - small, small);
    const bool has_second = info_.classes > kKinds * kKinds;
    std::byte* out = sample.bytes.data();
    for (int y = 0; y < info_.height; ++y) {
      for (int x = 0; x < info_.width; ++x) {
        Colour colour = background.at(static_cast<float>(x), static_cast<float>(y));
        first.draw(static_cast<float>(x), static_cast<float>(y), colour);
        if (has_second) second.draw(static_cast<float>(x), static_cast<float>(y), colour);
        for (const float value : colour) *out++ = to_byte(value);
      }
    }
    sample.boxes.assign(1, first.box(height, width));
  }

  // Makes sixteen bytes of noise from one random block.
  void add_noise(Draws& draws, std::int64_t index, Sample& sample) const {
    const float strength = draws.between(4, 24) / 128;
    for (std::size_t i = 0; i < sample.bytes.size(); i += sizeof(RandomBlock)) {
      const RandomBlock block = philox(~key_, static_cast<std::uint64_t>(index), i);
      std::array<std::int8_t, sizeof block> noise;
      std::memcpy(noise.data(), block.data(), sizeof block);
      const std::size_t end = std::min(sizeof block, sample.bytes.size() - i);
      for (std::size_t k = 0; k < end; ++k) {
        std::byte& value = sample.bytes[i + k];
        value = to_byte(static_cast<float>(std::to_integer<int>(value)) + strength * static_cast<float>(noise[k]));
      }
    }
  }
};

}  // namespace

std::shared_ptr<const Dataset> draw_digits(const DrawnOptions& options) {
  if (options.classes < 2 || options.classes > kMostDigits) {
    bad_input("{} classes of digits; there are 2 to {}", options.classes, kMostDigits);
  }
  return std::make_shared<DrawnDigits>(options);
}

std::shared_ptr<const Dataset> draw_shapes(const DrawnOptions& options) {
  if (options.classes < 2 || options.classes > kMostShapes) {
    bad_input("{} classes of shapes; there are 2 to {}", options.classes, kMostShapes);
  }
  return std::make_shared<DrawnShapes>(options);
}

}  // namespace trireme::data
