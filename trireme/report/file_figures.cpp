#include "trireme/report/file_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "trireme/perf/intervals.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/report/json_fields.hpp"

namespace trireme::report {
namespace {

struct Curve {
  const char* list;  // in the record: "curve" by steps, "epochs" by epochs
  const char* x;     // field of its entries; empty: seconds of training and evaluation so far
  const char* y;
};

Json list_of(const Json& json, const char* name) {
  Json list = field(json, {name});
  return list.is_array() ? list : Json::array();
}

Series series_of(const FileRecord& record, const Curve& curve, const std::string& name) {
  Series series{.name = name};
  for (const Json& entry : list_of(record.json, curve.list)) {
    const auto x = number_field(entry, {curve.x}), y = number_field(entry, {curve.y});
    if (x && y) series.points.push_back({.x = *x, .y = *y, .runs = 1});
  }
  return series;
}

std::string name_of(const FileRecord& record) {
  const std::string model = text_field(record.json, {"config", "model"});
  const std::string file = std::filesystem::path(record.file).stem();
  return model.empty() ? file : fmt::format("{} ({})", model, file);
}

FigureTable epochs_table(const std::vector<FileRecord>& records) {
  FigureTable table{.columns = {{"training"},
                                {"epoch", true},
                                {"step", true},
                                {"loss", true},
                                {"top-1 %", true},
                                {"validation loss", true},
                                {"images/s", true},
                                {"seconds", true}},
                    .rows = {}};
  for (const FileRecord& record : records) {
    // Of earlier runs, without their part of the first epoch here, which its entry includes.
    double seconds = std::max(0.0, number_field(record.json, {"resumed", "train_seconds"}).value_or(0) -
                                       number_field(record.json, {"resumed", "epoch_seconds"}).value_or(0));
    for (const Json& entry : list_of(record.json, "epochs")) {
      seconds +=
          number_field(entry, {"train_seconds"}).value_or(0) + number_field(entry, {"evaluation_seconds"}).value_or(0);
      auto top1 = number_field(entry, {"top1"});
      if (top1) top1 = 100 * *top1;
      table.rows.push_back({{name_of(record)},
                            number_cell(number_field(entry, {"epoch"})),
                            number_cell(number_field(entry, {"step"})),
                            number_cell(number_field(entry, {"loss"})),
                            number_cell(top1),
                            number_cell(number_field(entry, {"validation_loss"})),
                            number_cell(number_field(entry, {"images_per_second"})),
                            number_cell(seconds)});
    }
  }
  return table;
}

Figure training_figure(const std::vector<FileRecord>& records, const std::string& id, const std::string& title,
                       const std::string& x_title, const std::string& y_title, const Curve& curve) {
  Figure figure{.id = "training-" + id,
                .kind = FigureKind::lines,
                .title = title,
                .x = {.title = x_title},
                .y = {.title = y_title}};
  for (const FileRecord& record : records) {
    Series series = series_of(record, curve, name_of(record));
    if (!series.points.empty()) figure.series.push_back(std::move(series));
    figure.commands.push_back({name_of(record), command_text(field(record.json, {"command"}))});
    const std::string machine = machine_line(field(record.json, {"machine"}));
    if (figure.machine.find(machine) == std::string::npos)
      figure.machine += (figure.machine.empty() ? "" : "; ") + machine;
  }
  figure.caption = "One line per training run; each ran once, so there is no spread.";
  figure.table = epochs_table(records);
  if (figure.machine.find("; ") != std::string::npos)
    figure.notes.emplace_back("Training runs from several machines: compare their losses, not their times.");
  return figure;
}

void scale(Figure& figure, double factor) {
  for (Series& series : figure.series) {
    for (Point& point : series.points) point.y *= factor;
  }
}

// Bandwidth for one size, from its message times.
std::optional<Point> bandwidth(const Json& entry, const char* rate) {
  const auto bytes = number_field(entry, {"bytes"}), per_second = number_field(entry, {rate});
  if (!bytes || !per_second || *bytes <= 0 || *per_second <= 0) return std::nullopt;
  std::vector<double> seconds = number_list(entry, {"seconds", "samples"});
  std::erase_if(seconds, [](double value) { return value <= 0; });
  Point point{.x = *bytes, .y = *per_second / 1e9, .spread = {}, .runs = static_cast<int>(seconds.size())};
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

void add_point(Figure& figure, const std::string& name, const Json& entry, const char* rate) {
  const auto point = bandwidth(entry, rate);
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

Figure empty_figure(const FileRecord& record, const std::string& id, const std::string& title, int number) {
  Figure figure{.id = fmt::format("network-{}{}", id, number > 0 ? fmt::format("-{}", number + 1) : ""),
                .kind = FigureKind::lines,
                .title = title,
                .x = {.title = "bytes", .logarithmic = true},
                .y = {.title = "GB/s", .logarithmic = true}};
  figure.machine = machine_line(field(record.json, {"machine"}));
  figure.commands.push_back({"network test", command_text(field(record.json, {"command"}))});
  figure.table.columns = {{"series"},   {"bytes", true}, {"GB/s", true},   {"from", true},
                          {"to", true}, {"interval"},    {"samples", true}};
  return figure;
}

Figure pairs_figure(const FileRecord& record, int number) {
  Figure figure = empty_figure(record, "bandwidth", "Bandwidth between two processes", number);
  figure.caption = fmt::format("Bytes per second over message size, both axes logarithmic. Medians; {}.", kWhiskers);
  for (const Json& pair : list_of(record.json, "pairs")) {
    const std::vector<double> ranks = number_list(pair, {"ranks"});
    const std::string ends = ranks.size() == 2 ? fmt::format(", ranks {:g}-{:g}", ranks[0], ranks[1]) : "";
    for (const Json& message : list_of(pair, "messages")) {
      add_point(figure, fmt::format("{}{}, {}", text_field(pair, {"transport"}), ends, text_field(message, {"mode"})),
                message, "bytes_per_second");
    }
  }
  return figure;
}

Figure all_reduce_figure(const FileRecord& record, int number) {
  Figure figure = empty_figure(record, "all-reduce", "All-reduce: bandwidth on the bus", number);
  figure.caption =
      "2 (n − 1) / n times the bytes, divided by the time: comparable with the link for any number of ranks.";
  for (const Json& entry : list_of(record.json, "all_reduce")) {
    add_point(figure, fmt::format("{}, {}", text_field(entry, {"transport"}), text_field(entry, {"algorithm"})), entry,
              "bus_bytes_per_second");
  }
  return figure;
}

}  // namespace

std::vector<Figure> training_figures(const std::vector<FileRecord>& records) {
  std::vector<Figure> figures;
  if (records.empty()) return figures;
  const auto add = [&](Figure figure) {
    if (!figure.series.empty()) figures.push_back(std::move(figure));
  };
  add(training_figure(records, "loss-epochs", "Loss over epochs", "epoch", "loss", {"curve", "epoch", "loss"}));
  add(training_figure(records, "loss-time", "Loss over time", "seconds", "loss", {"curve", "seconds", "loss"}));
  Figure accuracy =
      training_figure(records, "accuracy", "Accuracy over epochs", "epoch", "top-1 (%)", {"epochs", "epoch", "top1"});
  scale(accuracy, 100);
  add(std::move(accuracy));
  return figures;
}

std::vector<Figure> network_figures(const std::vector<FileRecord>& records) {
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
