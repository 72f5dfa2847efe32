#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "trireme/base/json.hpp"
#include "trireme/perf/intervals.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/report/study_figures.hpp"

namespace trireme::report {
namespace {

using Number = std::optional<double>;

template <typename Entry>
struct Curve {
  std::vector<Entry> record::TrainingRecord::*list;
  Number Entry::*x;
  Number Entry::*y;
  double scale = 1;
};

template <typename Entry>
Series series_of(const Training& record, const Curve<Entry>& curve, const std::string& name) {
  Series series{.name = name};
  for (const Entry& entry : record.*curve.list) {
    const Number &x = entry.*curve.x, &y = entry.*curve.y;
    if (x && y) series.points.push_back({.x = *x, .y = curve.scale * *y, .runs = 1});
  }
  return series;
}

std::string name_of(const Training& record) {
  const std::string model = text_field(record.config, {"model"});
  const std::string file = std::filesystem::path(record.file).stem();
  return model.empty() ? file : fmt::format("{} ({})", model, file);
}

FigureTable epochs_table(const std::vector<Training>& records) {
  FigureTable table{.columns = {{"training"},
                                {"epoch", true},
                                {"step", true},
                                {"loss", true},
                                {"top-1 %", true},
                                {"validation loss", true},
                                {"images/s", true},
                                {"seconds", true}},
                    .rows = {}};
  for (const Training& record : records) {
    // Of earlier runs, without their part of the first epoch here, which its entry includes.
    double seconds =
        record.resumed ? std::max(0.0, record.resumed->train_seconds.value_or(0) - record.resumed->epoch_seconds) : 0;
    for (const record::Epoch& epoch : record.epochs) {
      seconds += epoch.train_seconds + epoch.evaluation_seconds;
      table.rows.push_back({{name_of(record)},
                            number_cell(epoch.epoch),
                            number_cell(epoch.step),
                            number_cell(epoch.loss),
                            number_cell(epoch.top1 ? Number(100 * *epoch.top1) : Number()),
                            number_cell(epoch.validation_loss),
                            number_cell(epoch.images_per_second),
                            number_cell(seconds)});
    }
  }
  return table;
}

template <typename Entry>
Figure training_figure(const std::vector<Training>& records, const std::string& id, const std::string& title,
                       const std::string& x_title, const std::string& y_title, const Curve<Entry>& curve) {
  Figure figure{.id = "training-" + id,
                .kind = FigureKind::lines,
                .title = title,
                .x = {.title = x_title},
                .y = {.title = y_title}};
  for (const Training& record : records) {
    Series series = series_of(record, curve, name_of(record));
    if (!series.points.empty()) figure.series.push_back(std::move(series));
    figure.commands.push_back({name_of(record), record::command_text(record.command)});
    const std::string machine = record.machine.line();
    if (figure.machine.find(machine) == std::string::npos)
      figure.machine += (figure.machine.empty() ? "" : "; ") + machine;
  }
  figure.caption = "One line per training run; each ran once, so there is no spread.";
  figure.table = epochs_table(records);
  if (figure.machine.find("; ") != std::string::npos)
    figure.notes.emplace_back("Training runs from several machines: compare their losses, not their times.");
  return figure;
}

// Bandwidth for one size, from its message times.
std::optional<Point> bandwidth(double bytes, double bytes_per_second, std::vector<double> seconds) {
  if (bytes <= 0 || bytes_per_second <= 0) return std::nullopt;
  std::erase_if(seconds, [](double value) { return value <= 0; });
  Point point{.x = bytes, .y = bytes_per_second / 1e9, .spread = {}, .runs = static_cast<int>(seconds.size())};
  if (seconds.size() > 1) {
    const perf::Interval interval = perf::median_interval(seconds);
    const double middle = perf::median(seconds);  // the rate belongs to the median time
    point.spread = perf::Interval{point.y * middle / interval.high, point.y * middle / interval.low, interval.is_range};
  }
  return point;
}

Series& series_named(Figure& figure, const std::string& name) {
  const auto found = std::ranges::find(figure.series, name, &Series::name);
  if (found != figure.series.end()) return *found;
  figure.series.push_back({.name = name});
  return figure.series.back();
}

void add_point(Figure& figure, const std::string& name, const std::optional<Point>& point) {
  if (!point) return;
  series_named(figure, name).points.push_back(*point);
  figure.table.rows.push_back({{name},
                               number_cell(point->x),
                               number_cell(point->y),
                               point->spread ? number_cell(point->spread->low) : TableCell{},
                               point->spread ? number_cell(point->spread->high) : TableCell{},
                               point->spread ? TableCell{kind_text(*point->spread)} : TableCell{},
                               number_cell(static_cast<double>(point->runs))});
}

Figure empty_figure(const Network& record, const std::string& id, const std::string& title, int number) {
  Figure figure{.id = fmt::format("network-{}{}", id, number > 0 ? fmt::format("-{}", number + 1) : ""),
                .kind = FigureKind::lines,
                .title = title,
                .x = {.title = "bytes", .logarithmic = true},
                .y = {.title = "GB/s", .logarithmic = true}};
  figure.machine = record.machine.line();
  figure.commands.push_back({"network test", record::command_text(record.command)});
  figure.table.columns = {{"series"},   {"bytes", true}, {"GB/s", true},   {"from", true},
                          {"to", true}, {"interval"},    {"samples", true}};
  return figure;
}

Figure pairs_figure(const Network& record, int number) {
  Figure figure = empty_figure(record, "bandwidth", "Bandwidth between two processes", number);
  figure.caption = fmt::format("Bytes per second over message size, both axes logarithmic. Medians; {}.", kWhiskers);
  for (const record::Pair& pair : record.pairs) {
    const std::string ends = pair.ranks.size() == 2 ? fmt::format(", ranks {}-{}", pair.ranks[0], pair.ranks[1]) : "";
    for (const record::Message& message : pair.messages) {
      add_point(figure, fmt::format("{}{}, {}", pair.transport, ends, message.mode),
                bandwidth(message.bytes, message.bytes_per_second, message.seconds.samples));
    }
  }
  return figure;
}

Figure all_reduce_figure(const Network& record, int number) {
  Figure figure = empty_figure(record, "all-reduce", "All-reduce: bandwidth on the bus", number);
  figure.caption =
      "2 (n − 1) / n times the bytes, divided by the time: comparable with the link for any number of ranks.";
  for (const record::AllReduce& entry : record.all_reduce) {
    add_point(figure, fmt::format("{}, {}", entry.transport, entry.algorithm),
              bandwidth(entry.bytes, entry.bus_bytes_per_second, entry.seconds.samples));
  }
  return figure;
}

}  // namespace

std::vector<Figure> training_figures(const std::vector<Training>& records) {
  std::vector<Figure> figures;
  if (records.empty()) return figures;
  const auto add = [&](Figure figure) {
    if (!figure.series.empty()) figures.push_back(std::move(figure));
  };
  using record::CurvePoint, record::Epoch, record::TrainingRecord;
  const Curve<CurvePoint> by_epoch{&TrainingRecord::curve, &CurvePoint::epoch, &CurvePoint::loss},
      by_time{&TrainingRecord::curve, &CurvePoint::seconds, &CurvePoint::loss};
  add(training_figure(records, "loss-epochs", "Loss over epochs", "epoch", "loss", by_epoch));
  add(training_figure(records, "loss-time", "Loss over time", "seconds", "loss", by_time));
  add(training_figure(records, "accuracy", "Accuracy over epochs", "epoch", "top-1 (%)",
                      Curve<Epoch>{&TrainingRecord::epochs, &Epoch::epoch, &Epoch::top1, 100}));
  return figures;
}

std::vector<Figure> network_figures(const std::vector<Network>& records) {
  std::vector<Figure> figures;
  for (std::size_t i = 0; i < records.size(); ++i) {
    for (Figure figure :
         {pairs_figure(records[i], static_cast<int>(i)), all_reduce_figure(records[i], static_cast<int>(i))}) {
      if (!figure.series.empty()) figures.push_back(std::move(figure));
    }
  }
  return figures;
}

}  // namespace trireme::report
