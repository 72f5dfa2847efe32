#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "trireme/report/renderers.hpp"

namespace trireme::report {
namespace {

// A colour: in a page a variable of its style, which has a light and a dark form; elsewhere as on white paper, since
// not every program that shows SVG knows variables.
struct Ink {
  const char* in_page;
  const char* on_paper;
};

// Told apart also by people who do not see all colours.
constexpr Ink kSeriesInks[] = {{"var(--s0)", "#2563eb"}, {"var(--s1)", "#d97706"}, {"var(--s2)", "#059669"},
                               {"var(--s3)", "#c026d3"}, {"var(--s4)", "#dc2626"}, {"var(--s5)", "#0891b2"},
                               {"var(--s6)", "#65a30d"}, {"var(--s7)", "#7c3aed"}};
constexpr Ink kInk{"var(--ink)", "#17202b"}, kQuiet{"var(--quiet)", "#566373"}, kFaint{"var(--faint)", "#e3e7ec"},
    kGround{"var(--card)", "#ffffff"};

constexpr double kWidth = 760, kMargin = 16, kLeft = 66, kRight = kWidth - kMargin;
constexpr std::size_t kFewPoints = 100;  // more of them are not drawn one by one

struct Place {
  double x = 0, y = 0;
};

struct Box {
  double left = 0, top = 0, width = 0, height = 0;
};

struct Stroke {
  Ink ink;
  double width = 1;
  bool is_dashed = false;
};

struct Fill {
  Ink ink;
  double corner = 2, opacity = 1;
};

struct Writing {
  const char* anchor = "start";
  double size = 11;
  Ink ink = kQuiet;
  double turned = 0;
};

// The few shapes that drawings are made of.
class SvgCanvas {
 public:
  explicit SvgCanvas(bool in_page) : in_page_(in_page) {}

  void line(const std::vector<Place>& places, const Stroke& stroke) {
    std::string points;
    for (const Place& place : places) points += fmt::format("{:.1f},{:.1f} ", place.x, place.y);
    body_ += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n", points,
                         colour(stroke.ink), stroke.width, stroke.is_dashed ? " stroke-dasharray=\"4 4\"" : "");
  }

  // With rounded corners, up to a circle. With a tip it is a mark, which shows it to who points at it.
  void rectangle(const Box& box, const Fill& fill, const std::string& tip) {
    body_ +=
        fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{}\" fill=\"{}\"{}{}\n",
                    box.left, box.top, box.width, box.height, fill.corner, colour(fill.ink),
                    fill.opacity == 1 ? "" : fmt::format(" fill-opacity=\"{:.2g}\"", fill.opacity),
                    tip.empty() ? "/>" : fmt::format(" class=\"mark\"><title>{}</title></rect>", xml_escaped(tip)));
  }

  void text(const Place& place, const std::string& text, const Writing& how) {
    const std::string turn =
        how.turned == 0 ? "" : fmt::format(" transform=\"rotate({} {:.1f} {:.1f})\"", how.turned, place.x, place.y);
    body_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"{}\"{}>{}</text>\n",
                    place.x, place.y, how.anchor, how.size, colour(how.ink), turn, xml_escaped(text));
  }

  std::string finish(double height, const Figure& figure) const {
    if (in_page_) {
      return fmt::format(
          "<svg viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}: {} over {}; the numbers are in the table "
          "below\">\n"
          "{}</svg>\n",
          kWidth, height, xml_escaped(figure.title), xml_escaped(figure.y.title),
          xml_escaped(figure.x.title.empty() ? "configurations" : figure.x.title), body_);
    }
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1:.0f}\" width=\"{0}\" height=\"{1:.0f}\" "
        "role=\"img\" font-family=\"system-ui, sans-serif\">\n<title>{2}</title>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"{3}\"/>\n{4}</svg>\n",
        kWidth, height, xml_escaped(figure.title), kGround.on_paper, body_);
  }

 private:
  const char* colour(Ink ink) const { return in_page_ ? ink.in_page : ink.on_paper; }

  bool in_page_;
  std::string body_;
};

bool begins_letter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// About how wide the longest text is, at the size of axes.
double widest(const std::vector<std::string>& texts) {
  std::ptrdiff_t letters = 0;
  for (const std::string& text : texts) letters = std::max(letters, std::ranges::count_if(text, begins_letter));
  return 6.2 * static_cast<double>(letters);
}

// With an ellipsis where it has more than so many letters.
std::string cut(const std::string& text, std::size_t room) {
  std::size_t letters = 0, end = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins_letter(text[i]) && ++letters == room) end = i;
  }
  return letters > room ? text.substr(0, end) + "…" : text;
}

std::vector<std::string> cut(std::vector<std::string> texts, std::size_t room) {
  for (std::string& text : texts) text = cut(text, room);
  return texts;
}

// "1", "2.5k", "1M"
std::string tick_text(double value) {
  const double size = std::fabs(value);
  if (size >= 1e9) return fmt::format("{:.4g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:.4g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:.4g}k", value / 1e3);
  return fmt::format("{:.4g}", size < 1e-12 ? 0 : value);
}

struct Range {
  double low = INFINITY, high = -INFINITY;

  void hold(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// The value `low` lies at `from`, `high` at `to`. Logarithmic scales have what is not above 0 at their lower end.
class SvgScale {
 public:
  SvgScale(const Range& range, double from, double to, bool logarithmic)
      : low_(std::isfinite(range.low) ? range.low : 1),
        high_(range.high > low_ ? range.high : low_ + (low_ == 0 ? 1 : std::fabs(low_))),
        from_(from),
        to_(to),
        logarithmic_(logarithmic) {}

  double place(double value) const {
    const double share = logarithmic_ ? std::log(std::max(value, low_) / low_) / std::log(high_ / low_)
                                      : (value - low_) / (high_ - low_);
    return from_ + share * (to_ - from_);
  }

  // Round values within the range: 0, 50, 100 ...; powers of ten (of two on short logarithmic ranges).
  std::vector<double> ticks() const {
    std::vector<double> ticks;
    const double base = high_ / low_ > 300 ? 10 : 2;
    if (logarithmic_) {
      for (double k = std::ceil(std::log(low_) / std::log(base) - 1e-9); std::pow(base, k) <= high_ * (1 + 1e-9); ++k)
        ticks.push_back(std::pow(base, k));
    }
    if (ticks.size() > 1) return ticks;
    // 1, 2 or 5 times a power of ten, near a fifth of the range.
    const double raw = (high_ - low_) / 5, power = std::pow(10, std::floor(std::log10(raw))), digit = raw / power;
    const double step = power * (digit <= 1.5 ? 1 : digit <= 3 ? 2 : digit <= 7 ? 5 : 10);
    ticks.clear();
    for (double k = std::ceil(low_ / step - 1e-9); k * step <= high_ + 1e-9 * step; ++k) ticks.push_back(k * step);
    return ticks;
  }

 private:
  double low_, high_, from_, to_;
  bool logarithmic_;
};

Ink ink_of(const Figure& figure, std::size_t place) {
  const Series& series = figure.series[place];
  const int chosen = series.ideal_of.value_or(series.colour.value_or(static_cast<int>(place)));
  return kSeriesInks[static_cast<std::size_t>(chosen) % std::size(kSeriesInks)];
}

// Where it is, then what it is: "workers: 4", "ring: 371.2 (95 %: 360.1 to 380.4), 5 runs".
std::string tip_of(const Figure& figure, const Series& series, const Point& point) {
  const bool is_map = figure.kind == FigureKind::heat_map;
  std::string text = is_map ? fmt::format("{}: {}, ", figure.row_title, series.name) : "";
  if (!figure.x.title.empty()) text += figure.x.title + ": ";
  text += figure.x.categories.empty() ? number_text(point.x) : figure.x.categories[static_cast<std::size_t>(point.x)];
  text += fmt::format("\n{}{}", is_map || figure.series.size() < 2 ? "" : series.name + ": ", number_text(point.y));
  if (point.spread) {
    text += fmt::format(" ({}: {} to {})", kind_text(*point.spread), number_text(point.spread->low),
                        number_text(point.spread->high));
  }
  if (point.runs > 0) text += fmt::format(", {} run{}", point.runs, point.runs == 1 ? "" : "s");
  return text;
}

// Lines of names, each with its colour, the ideals together; returns where the plot may begin.
double draw_legend(const Figure& figure, double top, SvgCanvas& canvas) {
  if (figure.series.size() < 2 || figure.kind == FigureKind::heat_map) return top + 10;
  double x = kMargin, y = top + 16;
  bool has_ideal = false;
  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    const bool is_ideal = figure.series[i].ideal_of.has_value();
    if (is_ideal && has_ideal) continue;
    has_ideal |= is_ideal;
    const std::string name = is_ideal ? "ideal" : cut(figure.series[i].name, 100);
    const double width = 44 + 1.1 * widest({name});
    if (x > kMargin && x + width > kWidth) {
      x = kMargin;
      y += 19;
    }
    if (figure.kind == FigureKind::lines) {
      canvas.line({{x, y - 4}, {x + 18, y - 4}},
                  {is_ideal ? kQuiet : ink_of(figure, i), is_ideal ? 1.4 : 2.4, is_ideal});
    } else {
      canvas.rectangle({x + 4, y - 10, 11, 11}, {ink_of(figure, i)}, "");
    }
    canvas.text({x + 24, y}, name, {.size = 12, .ink = kInk});
    x += width;
  }
  return y + 18;
}

// Of all values: from 0, or with some room around powers. What has no logarithm does not count.
Range y_range(const Figure& figure) {
  Range range;
  std::map<double, double> sums;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) {
      const perf::Interval spread = point.spread.value_or(perf::Interval{point.y, point.y});
      const double end = figure.kind == FigureKind::stacked_bars ? sums[point.x] += point.y : point.y;
      for (const double value : {end, spread.low, spread.high}) {
        if (!figure.y.logarithmic || value > 0) range.hold(value);
      }
    }
  }
  if (figure.y.logarithmic) return {range.low / 1.2, range.high * 1.2};
  return {std::min(0.0, 1.05 * range.low), std::max(0.0, 1.05 * range.high)};
}

std::set<double> x_places(const Figure& figure) {
  std::set<double> places;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) {
      if (!figure.x.logarithmic || point.x > 0) places.insert(point.x);
    }
  }
  return places;
}

// An I, standing or lying.
void draw_whisker(const Place& low, const Place& high, Ink ink, SvgCanvas& canvas) {
  const double x = low.x == high.x ? 4 : 0, y = 4 - x;
  canvas.line(
      {{low.x - x, low.y - y}, {low.x + x, low.y + y}, low, high, {high.x - x, high.y - y}, {high.x + x, high.y + y}},
      {ink, 1.4});
}

// Each of these returns where the drawing ends.
double draw_lines(const Figure& figure, double top, SvgCanvas& canvas) {
  const double bottom = top + 270;
  const SvgScale y(y_range(figure), bottom, top, figure.y.logarithmic);
  for (const double tick : y.ticks()) {
    canvas.line({{kLeft, y.place(tick)}, {kRight, y.place(tick)}}, {kFaint});
    canvas.text({kLeft - 8, y.place(tick) + 4}, tick_text(tick), {.anchor = "end"});
  }
  canvas.text({16, (top + bottom) / 2}, figure.y.title, {.anchor = "middle", .size = 12, .turned = -90});

  const std::set<double> places = x_places(figure);
  const Range range = places.empty() ? Range{} : Range{*places.begin(), *places.rbegin()};
  const SvgScale x(range, kLeft + 16, kRight - 16, figure.x.logarithmic);
  double end = 0;  // of the last tick's text
  // The places themselves where these are few: no drawing shows half a worker.
  for (const double tick : places.size() <= 10 ? std::vector<double>(places.begin(), places.end()) : x.ticks()) {
    const double half = widest({tick_text(tick)}) / 2;
    if (x.place(tick) - half < end) continue;
    canvas.text({x.place(tick), bottom + 18}, tick_text(tick), {.anchor = "middle"});
    end = x.place(tick) + half + 2;
  }
  canvas.text({(kLeft + kRight) / 2, bottom + 38}, figure.x.title, {.anchor = "middle", .size = 12});

  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    const Series& series = figure.series[i];
    const Ink ink = ink_of(figure, i);
    const bool is_ideal = series.ideal_of.has_value();
    std::vector<Place> points;
    for (const Point& point : series.points) {
      points.push_back({x.place(point.x), y.place(point.y)});
      const double middle = points.back().x;
      if (point.spread)
        draw_whisker({middle, y.place(point.spread->low)}, {middle, y.place(point.spread->high)}, ink, canvas);
    }
    canvas.line(points, {ink, is_ideal ? 1.4 : 2.0, is_ideal});
    // Of very many points so many have a tip that one is always near, and none is drawn.
    const std::size_t size = points.size(), step = 1 + size / (kFewPoints + 1);
    const double radius = size > 25 ? 2.2 : 3.4;
    for (std::size_t p = (size + step - 1) % step; p < size; p += step) {  // the last is one of them
      canvas.rectangle({points[p].x - radius, points[p].y - radius, 2 * radius, 2 * radius},
                       {ink, radius, is_ideal || step > 1 ? 0.0 : 1.0}, tip_of(figure, series, series.points[p]));
    }
  }
  return bottom + 46;
}

// From left to right, so that their names have room: those of a category below each other, or one after the other.
double draw_bars(const Figure& figure, double top, SvgCanvas& canvas) {
  const bool is_stacked = figure.kind == FigureKind::stacked_bars;
  const std::vector<std::string> names = cut(figure.x.categories, 54);
  const auto side_by_side = is_stacked ? 1.0 : static_cast<double>(figure.series.size());
  const double bar = std::max(10.0, 20 - 2 * side_by_side), slot = bar * side_by_side + 8;
  const double left = kMargin + 8 + std::max(widest(names), widest({figure.x.title}));
  const double bottom = top + slot * static_cast<double>(names.size());
  const SvgScale x(y_range(figure), left, kRight, false);
  for (const double tick : x.ticks()) {
    canvas.line({{x.place(tick), top}, {x.place(tick), bottom}}, {kFaint});
    canvas.text({x.place(tick), bottom + 16}, tick_text(tick), {.anchor = "middle"});
  }
  canvas.text({(left + kRight) / 2, bottom + 36}, figure.y.title, {.anchor = "middle", .size = 12});
  canvas.text({left - 8, bottom + 16}, figure.x.title, {.anchor = "end"});
  for (std::size_t i = 0; i < names.size(); ++i)
    canvas.text({left - 8, top + slot * (static_cast<double>(i) + 0.5) + 4}, names[i], {.anchor = "end"});
  std::map<double, double> sums;
  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    for (const Point& point : figure.series[i].points) {
      const double from = is_stacked ? sums[point.x] : 0, to = from + point.y;
      const double begin = x.place(std::min(from, to)), end = x.place(std::max(from, to));
      const double high = top + slot * point.x + 4 + (is_stacked ? 0 : static_cast<double>(i) * bar);
      canvas.rectangle({begin, high, end - begin, bar - 1}, {ink_of(figure, i), is_stacked ? 0.0 : 2.0},
                       tip_of(figure, figure.series[i], point));
      const double middle = high + (bar - 1) / 2;
      if (point.spread && !is_stacked)
        draw_whisker({x.place(point.spread->low), middle}, {x.place(point.spread->high), middle}, kInk, canvas);
      sums[point.x] = to;
    }
  }
  canvas.line({{x.place(0), top}, {x.place(0), bottom}}, {kQuiet});
  return bottom + 44;
}

// More is darker on white and brighter on black.
double draw_heat_map(const Figure& figure, double top, SvgCanvas& canvas) {
  constexpr double kHeight = 50, kCellGap = 3;
  Range range;
  std::vector<std::string> rows;
  for (const Series& series : figure.series) {
    rows.push_back(cut(series.name, 30));
    for (const Point& point : series.points) range.hold(point.y);
  }
  const double left = std::max(kLeft, kMargin + 12 + widest(rows));
  const double width = (kRight - left) / static_cast<double>(std::max<std::size_t>(1, figure.x.categories.size()));
  canvas.text({left + kCellGap, top + 12},
              fmt::format("{} down, {} across; {}", figure.row_title, figure.x.title, figure.y.title), {.size = 12});
  top += 24;
  for (std::size_t column = 0; column < figure.x.categories.size(); ++column)
    canvas.text({left + (static_cast<double>(column) + 0.5) * width, top + 12}, figure.x.categories[column],
                {.anchor = "middle", .size = 12});
  top += 20;
  for (std::size_t row = 0; row < rows.size(); ++row, top += kHeight) {
    canvas.text({left - 10, top + kHeight / 2 + 4}, rows[row], {.anchor = "end", .size = 12});
    for (const Point& point : figure.series[row].points) {
      const double share = range.high > range.low ? (point.y - range.low) / (range.high - range.low) : 1;
      const double opacity = 0.1 + 0.9 * share, x = left + point.x * width, middle = x + width / 2;
      const Ink ink = opacity > 0.75 ? kGround : kInk;
      const bool has_spread = point.spread && width > 84;
      canvas.rectangle({x + kCellGap, top, width - kCellGap, kHeight - kCellGap}, {kSeriesInks[0], 5, opacity},
                       tip_of(figure, figure.series[row], point));
      canvas.text({middle, top + kHeight / 2 + (has_spread ? -2 : 4)}, number_text(point.y),
                  {.anchor = "middle", .size = 14, .ink = ink});
      if (!has_spread) continue;
      canvas.text({middle, top + kHeight / 2 + 13},
                  fmt::format("{} – {}", number_text(point.spread->low), number_text(point.spread->high)),
                  {.anchor = "middle", .size = 9.5, .ink = ink});
    }
  }
  return top + 8;
}

std::string drawing(const Figure& figure, bool in_page) {
  SvgCanvas canvas(in_page);
  double y = 0;
  if (!in_page) {
    canvas.text({kMargin, 28}, cut(figure.subject.empty() ? figure.title : figure.subject + ": " + figure.title, 86),
                {.size = 17, .ink = kInk});
    y = 36;
  }
  y = draw_legend(figure, y, canvas);
  if (figure.kind == FigureKind::heat_map) {
    y = draw_heat_map(figure, y, canvas);
  } else {
    y = figure.kind == FigureKind::lines ? draw_lines(figure, y, canvas) : draw_bars(figure, y, canvas);
  }
  if (in_page) return canvas.finish(y, figure);
  canvas.text({kRight, y + 16}, cut(figure.machine, 140), {.anchor = "end", .size = 10});
  return canvas.finish(y + 26, figure);
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  constexpr std::string_view kMarks = "&<>\"'";
  constexpr std::array<const char*, kMarks.size()> kEntities{"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    if (const std::size_t mark = kMarks.find(c); mark != std::string_view::npos) {
      result += kEntities[mark];
    } else {
      result += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return result;
}

std::string to_svg(const Figure& figure) { return drawing(figure, false); }

std::string to_inline_svg(const Figure& figure) { return drawing(figure, true); }

}  // namespace trireme::report
