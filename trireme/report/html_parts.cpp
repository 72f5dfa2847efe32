#include "trireme/report/html_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trireme/report/run_record.hpp"
#include "trireme/report/svg_canvas.hpp"

namespace trireme::report {
namespace {

constexpr std::size_t kLongTable = 14;       // rows from which a table scrolls
constexpr std::size_t kManyCategories = 10;  // from which names on the axis need room

const char* kind_name(FigureKind kind) {
  switch (kind) {
    case FigureKind::bars:
      return "bars";
    case FigureKind::stacked_bars:
      return "stacked_bars";
    case FigureKind::heat_map:
      return "heat_map";
    case FigureKind::lines:
      break;
  }
  return "lines";
}

Json axis_json(const Axis& axis) {
  Json json{{"title", axis.title}, {"logarithmic", axis.logarithmic}};
  if (!axis.categories.empty()) json["categories"] = axis.categories;
  return json;
}

Json point_json(const Point& point) {
  Json json{{"x", point.x}, {"y", point.y}, {"runs", point.runs}};
  if (point.spread) {
    json["low"] = point.spread->low;
    json["high"] = point.spread->high;
    json["interval"] = kind_text(*point.spread);
  }
  return json;
}

// A cell of the map; darker is more.
std::string heat_cell(const Point& point, double lowest, double highest) {
  const double share = highest > lowest ? (point.y - lowest) / (highest - lowest) : 1;
  const std::string spread =
      point.spread ? fmt::format("{} – {}", number_text(point.spread->low), number_text(point.spread->high))
                   : "one run";
  const std::string kind = point.spread ? fmt::format("{}: ", kind_text(*point.spread)) : "";
  return fmt::format(
      "<td style=\"--share:{:.3f}\" class=\"{}{}\" title=\"{} ({}{}), {} run{}\"><b>{}</b><small>{}</small></td>",
      share, share > 0.55 ? "strong" : "", point.y == highest ? " best" : "", number_text(point.y), kind, spread,
      point.runs, point.runs == 1 ? "" : "s", number_text(point.y), spread);
}

std::string heat_map(const Figure& figure) {
  double lowest = INFINITY, highest = -INFINITY;
  for (const Series& row : figure.series) {
    for (const Point& point : row.points) {
      lowest = std::min(lowest, point.y);
      highest = std::max(highest, point.y);
    }
  }
  std::string text = fmt::format(
      "<div class=\"heatscroll\"><table class=\"heat\"><thead><tr><th class=\"axis\" scope=\"col\">{} ↓ &nbsp; {} "
      "→</th>",
      xml_escaped(figure.row_title), xml_escaped(figure.x.title));
  for (const std::string& column : figure.x.categories)
    text += fmt::format("<th scope=\"col\">{}</th>", xml_escaped(column));
  text += "</tr></thead><tbody>";
  for (const Series& row : figure.series) {
    text += fmt::format("<tr><th scope=\"row\">{}</th>", xml_escaped(row.name));
    for (std::size_t column = 0; column < figure.x.categories.size(); ++column) {
      const auto point = std::find_if(row.points.begin(), row.points.end(), [&](const Point& candidate) {
        return candidate.x == static_cast<double>(column);
      });
      text += point == row.points.end() ? "<td class=\"none\">–</td>" : heat_cell(*point, lowest, highest);
    }
    text += "</tr>";
  }
  return text + "</tbody></table></div>\n";
}

std::string drawing(const Figure& figure) {
  if (figure.kind == FigureKind::heat_map) return heat_map(figure);
  // Lying bars need room by their number.
  const std::string height =
      figure.kind == FigureKind::stacked_bars
          ? fmt::format(" style=\"height:{:.1f}rem\"", 7 + 1.7 * static_cast<double>(figure.x.categories.size()))
          : std::string();
  return fmt::format(
      "<div class=\"plot{}\"{}><canvas role=\"img\" aria-label=\"{}: {} over {}; the numbers are in the table "
      "below\"></canvas></div>\n",
      figure.x.categories.size() > kManyCategories ? " tall" : "", height, xml_escaped(figure.title),
      xml_escaped(figure.y.title), xml_escaped(figure.x.title.empty() ? "configurations" : figure.x.title));
}

std::string commands(const Figure& figure) {
  std::string text;
  std::size_t count = 0;
  for (const FigureCommand& command : figure.commands) {
    if (command.command.empty()) continue;
    text += fmt::format("<div><span>{}</span>{}</div>\n", xml_escaped(command.label), html_command(command.command));
    ++count;
  }
  if (text.empty()) return "";
  return fmt::format("<details><summary>Command{} ({})</summary><div class=\"commands\">\n{}</div></details>\n",
                     count == 1 ? "" : "s", count, text);
}

}  // namespace

std::string html_table(const FigureTable& table, const std::string& label) {
  std::string head, body;
  for (const TableColumn& column : table.columns) {
    head += fmt::format("<th scope=\"col\"{}><button type=\"button\">{}</button></th>",
                        column.is_number ? " class=\"n\"" : "", xml_escaped(column.title));
  }
  for (const auto& row : table.rows) {
    body += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string value = row[i].number ? fmt::format(" data-v=\"{}\"", *row[i].number) : "";
      body += fmt::format("<td{}{}>{}</td>", table.columns[i].is_number ? " class=\"n\"" : "", value,
                          xml_escaped(row[i].text));
    }
    body += "</tr>\n";
  }
  return fmt::format(
      "<div class=\"tablebox\"><div class=\"tablebar\"><button type=\"button\" class=\"copy\">Copy table</button></div>"
      "<div class=\"scroll{}\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table "
      "class=\"data\"><thead><tr>{}</tr>"
      "</thead>\n<tbody>\n{}</tbody></table></div></div>\n",
      table.rows.size() > kLongTable ? " long" : "", xml_escaped(label), head, body);
}

std::string html_command(const std::string& command) {
  return fmt::format("<div class=\"command\"><pre>{}</pre><button type=\"button\" class=\"copy\">Copy</button></div>",
                     xml_escaped(command));
}

std::string html_figure(const Figure& figure) {
  std::string text =
      fmt::format("<figure id=\"{}\" class=\"card\">\n<figcaption><h3>{}</h3>", figure.id, xml_escaped(figure.title));
  if (!figure.caption.empty()) text += fmt::format("<p>{}</p>", xml_escaped(figure.caption));
  text += "</figcaption>\n" + drawing(figure);
  for (const std::string& note : figure.notes) text += fmt::format("<p class=\"note\">{}</p>\n", xml_escaped(note));
  text += fmt::format("<details class=\"table\"{}><summary>Table ({} row{})</summary>{}</details>\n",
                      figure.table.rows.size() <= 8 ? " open" : "", figure.table.rows.size(),
                      figure.table.rows.size() == 1 ? "" : "s", html_table(figure.table, "Table of " + figure.title));
  text += commands(figure);
  return text + fmt::format("<p class=\"origin\">Measured on {}</p>\n</figure>\n", xml_escaped(figure.machine));
}

std::string chart_data(const Figure& figure) {
  Json series = Json::array();
  for (const Series& entry : figure.series) {
    Json points = Json::array();
    for (const Point& point : entry.points) points.push_back(point_json(point));
    series.push_back({{"name", entry.name}, {"points", std::move(points)}});
    if (entry.ideal_of) series.back()["ideal_of"] = *entry.ideal_of;
    if (entry.colour) series.back()["colour"] = *entry.colour;
  }
  const Json json{{"id", figure.id},
                  {"kind", kind_name(figure.kind)},
                  {"x", axis_json(figure.x)},
                  {"y", axis_json(figure.y)},
                  {"series", std::move(series)}};
  // Nothing in it may end the element that it stands in, or begin a comment.
  std::string text;
  for (const char c : json.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    if (c == '<' || c == '>' || c == '&') {
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace trireme::report
