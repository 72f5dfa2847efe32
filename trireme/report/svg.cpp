#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "trireme/report/renderers.hpp"

namespace trireme::report {
namespace {

// The few shapes that drawings are made of.
class SvgCanvas {
 public:
  enum class Anchor { start, middle, end };

  SvgCanvas(double width, double height, const std::string& title);

  void line(double x1, double y1, double x2, double y2, const std::string& colour, double width = 1,
            const std::string& dashes = "");
  void rectangle(double x, double y, double width, double height, const std::string& colour);
  void circle(double x, double y, double radius, const std::string& colour);
  void text(double x, double y, const std::string& text, Anchor anchor = Anchor::start, double size = 12,
            const std::string& colour = "#1f2933", double turned = 0);

  std::string finish() const { return head_ + body_ + "</svg>\n"; }

 private:
  std::string head_, body_;
};

SvgCanvas::SvgCanvas(double width, double height, const std::string& title)
    : head_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
                        "height=\"{1:.0f}\" role=\"img\" font-family=\"system-ui, sans-serif\">\n<title>{2}</title>\n"
                        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
                        width, height, xml_escaped(title))) {}

void SvgCanvas::line(double x1, double y1, double x2, double y2, const std::string& colour, double width,
                     const std::string& dashes) {
  body_ += fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n", x1, y1,
      x2, y2, colour, width, dashes.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dashes));
}

void SvgCanvas::rectangle(double x, double y, double width, double height, const std::string& colour) {
  body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y,
                       width, height, colour);
}

void SvgCanvas::circle(double x, double y, double radius, const std::string& colour) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", x, y, radius, colour);
}

void SvgCanvas::text(double x, double y, const std::string& text, Anchor anchor, double size, const std::string& colour,
                     double turned) {
  const char* const where = anchor == Anchor::start ? "start" : anchor == Anchor::middle ? "middle" : "end";
  const std::string turn = turned == 0 ? "" : fmt::format(" transform=\"rotate({} {:.1f} {:.1f})\"", turned, x, y);
  body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"{}\"{}>{}</text>\n",
                       x, y, where, size, colour, turn, xml_escaped(text));
}

constexpr int kTicks = 5;

// 1, 2 or 5 times a power of ten, near a fifth of the range.
double round_step(double range) {
  const double raw = range / kTicks, power = std::pow(10, std::floor(std::log10(raw)));
  const double digit = raw / power;
  return power * (digit <= 1.5 ? 1 : digit <= 3 ? 2 : digit <= 7 ? 5 : 10);
}

// The value `low` lies at `from`, `high` at `to`; logarithmic scales need values above 0.
class SvgScale {
 public:
  SvgScale(double low, double high, double from, double to, bool logarithmic);

  double place(double value) const;
  // Round values within the range: 0, 50, 100 ...; powers of ten (and of two on short logarithmic ranges).
  std::vector<double> ticks() const;

 private:
  double low_, high_, from_, to_;
  bool logarithmic_;
};

SvgScale::SvgScale(double low, double high, double from, double to, bool logarithmic)
    : low_(low), high_(high), from_(from), to_(to), logarithmic_(logarithmic) {
  if (!(high_ > low_)) high_ = low_ + (low_ == 0 ? 1 : std::fabs(low_));  // a single value has a range too
}

double SvgScale::place(double value) const {
  const double share = logarithmic_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
  return from_ + share * (to_ - from_);
}

std::vector<double> SvgScale::ticks() const {
  std::vector<double> ticks;
  if (!logarithmic_) {
    const double step = round_step(high_ - low_);
    for (double k = std::ceil(low_ / step - 1e-9); k * step <= high_ * (1 + 1e-9); ++k) ticks.push_back(k * step);
    return ticks;
  }
  const double base = high_ / low_ > 300 ? 10 : 2;
  for (double k = std::ceil(std::log(low_) / std::log(base) - 1e-9);; ++k) {
    const double value = std::pow(base, k);
    if (value > high_ * (1 + 1e-9)) return ticks;
    ticks.push_back(value);
  }
}

// "1", "2.5k", "1M"
std::string tick_text(double value) {
  const double size = std::fabs(value);
  if (size >= 1e9) return fmt::format("{:g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:.4g}", size < 1e-12 ? 0 : value);
}

using Anchor = SvgCanvas::Anchor;

// Told apart also by people who do not see all colours; the page has the same.
constexpr const char* kColours[] = {"#2563eb", "#d97706", "#059669", "#c026d3",
                                    "#dc2626", "#0891b2", "#65a30d", "#7c3aed"};
constexpr const char* kInk = "#1f2933";
constexpr const char* kFaint = "#e4e7eb";
constexpr const char* kQuiet = "#616e7c";
constexpr double kWidth = 760, kLeft = 76, kRight = 24, kTop = 64, kPlotHeight = 300, kBarHeight = 24;

std::string colour_of(const Figure& figure, std::size_t place) {
  const Series& series = figure.series[place];
  const int chosen = series.ideal_of.value_or(series.colour.value_or(static_cast<int>(place)));
  return kColours[static_cast<std::size_t>(chosen) % std::size(kColours)];
}

std::size_t longest_name(const std::vector<std::string>& names) {
  std::size_t longest = 0;
  for (const std::string& name : names) longest = std::max(longest, name.size());
  return longest;
}

struct Range {
  double low = INFINITY, high = -INFINITY;

  void hold(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

Range x_range(const Figure& figure) {
  Range range;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) range.hold(point.x);
  }
  return range;
}

Range y_range(const Figure& figure) {
  Range range;
  if (!figure.y.logarithmic) range.hold(0);
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) {
      range.hold(point.y);
      if (point.spread) range.hold(point.spread->low);
      if (point.spread) range.hold(point.spread->high);
    }
  }
  if (!figure.y.logarithmic) {
    if (range.high > 0) range.high *= 1.05;
    if (range.low < 0) range.low *= 1.05;
  } else if (range.low <= 0) {
    range.low = range.high / 1000;
  }
  return range;
}

Range stacked_range(const Figure& figure) {
  std::vector<double> sums(figure.x.categories.size(), 0);
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) sums[static_cast<std::size_t>(point.x)] += point.y;
  }
  Range range;
  range.hold(0);
  for (const double sum : sums) range.hold(1.05 * sum);
  return range;
}

// A line or two of names, each with its colour; returns where the plot may begin.
double draw_legend(const Figure& figure, SvgCanvas& canvas) {
  if (figure.series.size() < 2) return kTop - 16;
  double x = kLeft, y = 52;
  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    const Series& series = figure.series[i];
    const double width = 34 + 6.6 * static_cast<double>(series.name.size());
    if (x > kLeft && x + width > kWidth - kRight) {
      x = kLeft;
      y += 18;
    }
    const std::string colour = colour_of(figure, i);
    canvas.line(x, y - 4, x + 16, y - 4, colour, 3, series.ideal_of ? "3 3" : "");
    canvas.text(x + 22, y, series.name);
    x += width;
  }
  return y + 18;
}

// The places themselves where there are few: no drawing shows half a worker.
std::vector<double> x_ticks(const Figure& figure, const SvgScale& scale) {
  constexpr std::size_t kFew = 10;
  std::set<double> places;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) places.insert(point.x);
  }
  return places.size() <= kFew ? std::vector<double>(places.begin(), places.end()) : scale.ticks();
}

class Plot {
 public:
  Plot(const Figure& figure, const Range& y, double top, SvgCanvas& canvas)
      : figure_(figure),
        canvas_(canvas),
        top_(top),
        bottom_(top + kPlotHeight),
        y_(y.low, y.high, bottom_, top_, figure.y.logarithmic) {
    for (const double tick : y_.ticks()) {
      canvas_.line(kLeft, y_.place(tick), kWidth - kRight, y_.place(tick), kFaint);
      canvas_.text(kLeft - 8, y_.place(tick) + 4, tick_text(tick), Anchor::end, 11, kQuiet);
    }
    canvas_.text(20, (top_ + bottom_) / 2, figure.y.title, Anchor::middle, 12, kQuiet, -90);
  }

  void lines() {
    const Range range = x_range(figure_);
    const SvgScale x(range.low, range.high, kLeft + 16, kWidth - kRight - 16, figure_.x.logarithmic);
    for (const double tick : x_ticks(figure_, x))
      canvas_.text(x.place(tick), bottom_ + 18, tick_text(tick), Anchor::middle, 11, kQuiet);
    canvas_.text((kLeft + kWidth - kRight) / 2, bottom_ + 38, figure_.x.title, Anchor::middle, 12, kQuiet);
    for (std::size_t i = 0; i < figure_.series.size(); ++i) {
      const Series& series = figure_.series[i];
      const std::string colour = colour_of(figure_, i);
      for (std::size_t p = 0; p < series.points.size(); ++p) {
        const Point& point = series.points[p];
        const double px = x.place(point.x), py = y_.place(point.y);
        if (p > 0) {
          const Point& before = series.points[p - 1];
          canvas_.line(x.place(before.x), y_.place(before.y), px, py, colour, series.ideal_of ? 1.2 : 2,
                       series.ideal_of ? "4 4" : "");
        }
        if (series.ideal_of) continue;
        whisker(px, point, colour);
        if (series.points.size() <= 40) canvas_.circle(px, py, 3.2, colour);
      }
    }
  }

  void bars() {
    const auto places = static_cast<double>(figure_.x.categories.size());
    const double slot = (kWidth - kRight - kLeft) / places;
    const auto count = static_cast<double>(figure_.series.size());
    const double width = std::min(56.0, 0.76 * slot / count);
    for (std::size_t i = 0; i < figure_.series.size(); ++i) {
      for (const Point& point : figure_.series[i].points) {
        const double left = kLeft + (point.x + 0.5) * slot + (static_cast<double>(i) - count / 2) * width;
        const double high = y_.place(std::max(0.0, point.y)), low = y_.place(std::min(0.0, point.y));
        canvas_.rectangle(left + 1, high, width - 2, low - high, colour_of(figure_, i));
        whisker(left + width / 2, point, kInk);
      }
    }
    canvas_.line(kLeft, y_.place(0), kWidth - kRight, y_.place(0), kQuiet);
    categories(slot);
  }

 private:
  void whisker(double x, const Point& point, const std::string& colour) {
    if (!point.spread) return;
    const double floor = figure_.y.logarithmic ? point.y / 10 : -INFINITY;  // an interval may reach below a logarithm
    const double low = y_.place(std::max(point.spread->low, floor)), high = y_.place(point.spread->high);
    canvas_.line(x, low, x, high, colour, 1.4);
    for (const double end : {low, high}) canvas_.line(x - 4, end, x + 4, end, colour, 1.4);
  }

  // Straight where they have room, else turned.
  void categories(double slot) {
    const bool turned = 6.4 * static_cast<double>(longest_name(figure_.x.categories)) > slot;
    for (std::size_t i = 0; i < figure_.x.categories.size(); ++i) {
      const double middle = kLeft + (static_cast<double>(i) + 0.5) * slot;
      canvas_.text(middle, bottom_ + (turned ? 14 : 18), figure_.x.categories[i], turned ? Anchor::end : Anchor::middle,
                   11, kQuiet, turned ? -35 : 0);
    }
  }

  const Figure& figure_;
  SvgCanvas& canvas_;
  double top_, bottom_;
  SvgScale y_;
};

// Bars from left to right, so that their names have room.
void draw_stacked(const Figure& figure, double top, SvgCanvas& canvas) {
  const double names = std::min(300.0, 16 + 6.2 * static_cast<double>(longest_name(figure.x.categories)));
  const double bottom = top + kBarHeight * static_cast<double>(figure.x.categories.size());
  const SvgScale x(0, stacked_range(figure).high, names, kWidth - kRight, false);
  for (const double tick : x.ticks()) {
    canvas.line(x.place(tick), top, x.place(tick), bottom, kFaint);
    canvas.text(x.place(tick), bottom + 16, tick_text(tick), Anchor::middle, 11, kQuiet);
  }
  canvas.text((names + kWidth - kRight) / 2, bottom + 36, figure.y.title, Anchor::middle, 12, kQuiet);
  std::vector<double> sums(figure.x.categories.size(), 0);
  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    for (const Point& point : figure.series[i].points) {
      double& sum = sums[static_cast<std::size_t>(point.x)];
      const double from = x.place(sum), to = x.place(sum + point.y);
      canvas.rectangle(from, top + kBarHeight * point.x + 3, to - from, kBarHeight - 6, colour_of(figure, i));
      sum += point.y;
    }
  }
  for (std::size_t i = 0; i < figure.x.categories.size(); ++i)
    canvas.text(names - 8, top + kBarHeight * (static_cast<double>(i) + 0.5) + 4, figure.x.categories[i], Anchor::end,
                11, kQuiet);
}

void draw_heat_map(const Figure& figure, SvgCanvas& canvas) {
  Range range;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) range.hold(point.y);
  }
  const double width = (kWidth - kLeft - kRight - 30) / static_cast<double>(figure.x.categories.size()), height = 46;
  canvas.text(kLeft, 56, fmt::format("{} down, {} across; {}", figure.row_title, figure.x.title, figure.y.title),
              Anchor::start, 12, kQuiet);
  for (std::size_t column = 0; column < figure.x.categories.size(); ++column)
    canvas.text(kLeft + 30 + (static_cast<double>(column) + 0.5) * width, 82, figure.x.categories[column],
                Anchor::middle, 12, kQuiet);
  for (std::size_t row = 0; row < figure.series.size(); ++row) {
    const double top = 90 + height * static_cast<double>(row);
    canvas.text(kLeft + 18, top + height / 2 + 4, figure.series[row].name, Anchor::end, 12, kQuiet);
    for (const Point& point : figure.series[row].points) {
      const double share = range.high > range.low ? (point.y - range.low) / (range.high - range.low) : 1;
      const double left = kLeft + 30 + point.x * width;
      // From pale to the first colour, 2563eb.
      const auto mix = [&](double pale, double full) {
        return static_cast<int>(std::lround(pale + share * (full - pale)));
      };
      canvas.rectangle(left + 1, top + 1, width - 2, height - 2,
                       fmt::format("#{:02x}{:02x}{:02x}", mix(0xe8, 0x25), mix(0xf0, 0x63), mix(0xfd, 0xeb)));
      canvas.text(left + width / 2, top + height / 2 + 4, number_text(point.y), Anchor::middle, 13,
                  share > 0.55 ? "#ffffff" : kInk);
    }
  }
}

double plot_height(const Figure& figure) {
  const auto categories = static_cast<double>(figure.x.categories.size());
  if (figure.kind == FigureKind::stacked_bars) return kBarHeight * categories + 40;
  const auto longest = static_cast<double>(longest_name(figure.x.categories));
  const bool turned = categories > 0 && 6.4 * longest > (kWidth - kRight - kLeft) / categories;
  return kPlotHeight + (turned ? 30 + 3.8 * longest : 52);
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

std::string to_svg(const Figure& figure) {
  const double legend_room =
      figure.series.size() < 2 ? 0 : 18 * std::ceil(static_cast<double>(figure.series.size()) / 2);
  const double height = figure.kind == FigureKind::heat_map ? 120 + 46 * static_cast<double>(figure.series.size())
                                                            : kTop + legend_room + plot_height(figure) + 24;
  SvgCanvas canvas(kWidth, height, figure.title);
  canvas.text(kLeft, 28, figure.subject.empty() ? figure.title : fmt::format("{}: {}", figure.subject, figure.title),
              Anchor::start, 17);
  if (figure.kind == FigureKind::heat_map) {
    draw_heat_map(figure, canvas);
  } else if (figure.kind == FigureKind::stacked_bars) {
    draw_stacked(figure, draw_legend(figure, canvas), canvas);
  } else {
    const double top = draw_legend(figure, canvas);
    Plot plot(figure, y_range(figure), top, canvas);
    if (figure.kind == FigureKind::lines) {
      plot.lines();
    } else {
      plot.bars();
    }
  }
  canvas.text(kWidth - kRight, height - 8, figure.machine, Anchor::end, 10, kQuiet);
  return canvas.finish();
}

}  // namespace trireme::report
