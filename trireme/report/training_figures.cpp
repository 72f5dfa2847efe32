#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "trireme/report/file_figures.hpp"
#include "trireme/report/json_fields.hpp"

namespace trireme::report {
namespace {

struct Curve {
  const char* list;  // of the record: "curve" by steps, "epochs" by epochs
  const char* x;     // field of its entries; empty: seconds of training and evaluation so far
  const char* y;
};

Json entries_of(const FileRecord& record, const char* list) {
  Json entries = field(record.json, {list});
  return entries.is_array() ? entries : Json::array();
}

Series series_of(const FileRecord& record, const Curve& curve, const std::string& name) {
  Series series{.name = name};
  for (const Json& entry : entries_of(record, curve.list)) {
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
    // Of earlier runs, without their part of the first epoch here: that is in its entry.
    double seconds = std::max(0.0, number_field(record.json, {"resumed", "train_seconds"}).value_or(0) -
                                       number_field(record.json, {"resumed", "epoch_seconds"}).value_or(0));
    for (const Json& entry : entries_of(record, "epochs")) {
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
  figure.caption = "One line per training; a single run each, so there is no spread.";
  figure.table = epochs_table(records);
  if (figure.machine.find("; ") != std::string::npos)
    figure.notes.emplace_back("Trainings of several machines: compare their losses, not their times.");
  return figure;
}

void scale(Figure& figure, double factor) {
  for (Series& series : figure.series) {
    for (Point& point : series.points) point.y *= factor;
  }
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

}  // namespace trireme::report
