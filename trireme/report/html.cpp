#include <fmt/format.h>

#include <array>

#include "trireme/report/finding_text.hpp"
#include "trireme/report/renderers.hpp"
#include "trireme_page_texts.hpp"

namespace trireme::report {
namespace {

// The browser itself refuses whatever the page would ask for.
constexpr const char* kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'";

constexpr const char* kMethod = R"(<section id="method"><h2>How to read this</h2><div class="method">
<p><b>Figures</b> are medians over runs. Intervals contain the true median with 95 % confidence, whatever the distribution;
with fewer than 6 runs, the range is given instead. Images per second count all workers together.</p>
<p><b>Differences</b> are claimed only if the Mann-Whitney rank-sum test supports them (two-sided, p below 0.05,
counted over all orders of the runs, ties included) and the medians agree with it. If one question is asked of several
configurations at once, p is corrected by Holm's method. Repeats inside one process count as one run. “Open” means that
no difference could be shown, or that there were too few runs to show one: with three runs on each side, p cannot be
below 0.1.</p>
<p><b>Ratios</b> are those of medians; their intervals are the factors that the rank test does not reject. Whether an
<b>option</b> matters at all is judged over all its values at once (Kruskal-Wallis, by permuting runs at random), all
other options being equal. The cost of <b>input</b> is judged by a one-sided sign test over the loss of each
run.</p></div></section>
)";

constexpr std::size_t kLongTable = 14;      // rows from which a table scrolls
constexpr std::size_t kFirstFindings = 10;  // that a reader sees at once

struct Badge {
  const char* css;
  const char* text;
};

Badge badge_of(Finding::Kind kind) {
  constexpr std::array<Badge, 4> kBadges{
      {{"shown", "Supported"}, {"not-shown", "Open"}, {"fact", "Measured"}, {"worse", "Worse"}}};
  return kBadges.at(static_cast<std::size_t>(kind));
}

std::string html_sentence(const Sentence& sentence) {
  constexpr std::array<std::pair<const char*, const char*>, 3> kTags{
      {{"", ""}, {"<strong>", "</strong>"}, {"<span class=\"p\">", "</span>"}}};
  std::string html;
  for (const auto& [text, emphasis] : sentence.pieces) {
    const auto& [open, close] = kTags.at(static_cast<std::size_t>(emphasis));
    html += open + xml_escaped(text) + close;
  }
  return html;
}

// A table that sorts and can be copied.
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

// A command line that can be copied.
std::string html_command(const std::string& command) {
  return fmt::format("<div class=\"command\"><pre>{}</pre><button type=\"button\" class=\"copy\">Copy</button></div>",
                     xml_escaped(command));
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

// Title, drawing, notes, table, commands, machine.
std::string html_figure(const Figure& figure) {
  std::string text =
      fmt::format("<figure id=\"{}\" class=\"card\">\n<figcaption><h3>{}</h3>", figure.id, xml_escaped(figure.title));
  if (!figure.caption.empty()) text += fmt::format("<p>{}</p>", xml_escaped(figure.caption));
  text += "</figcaption>\n<div class=\"plot\">" + to_inline_svg(figure) + "</div>\n";
  for (const std::string& note : figure.notes) text += fmt::format("<p class=\"note\">{}</p>\n", xml_escaped(note));
  text += fmt::format("<details class=\"table\"{}><summary>Table ({} row{})</summary>{}</details>\n",
                      figure.table.rows.size() <= 8 ? " open" : "", figure.table.rows.size(),
                      figure.table.rows.size() == 1 ? "" : "s", html_table(figure.table, "Table of " + figure.title));
  text += commands(figure);
  return text + fmt::format("<p class=\"origin\">Measured on {}</p>\n</figure>\n", xml_escaped(figure.machine));
}

std::string figure_link(const Document& document, const std::string& id, const char* text) {
  const Figure* figure = document.figure(id);
  if (figure == nullptr) return "";
  return fmt::format("<a class=\"more\" href=\"#{}\" aria-label=\"{}: {}\">{}</a>", id, text,
                     xml_escaped(figure->title), text);
}

std::string warnings(const Document& document) {
  if (document.warnings.empty()) return "";
  std::string items;
  for (const std::string& warning : document.warnings) items += fmt::format("<li>{}</li>", xml_escaped(warning));
  return fmt::format("<aside class=\"warnings\" role=\"note\"><h2>Warnings</h2><ul>{}</ul></aside>\n", items);
}

std::string findings(const Document& document) {
  if (document.findings.empty()) return "";
  std::string items, more;
  for (std::size_t i = 0; i < document.findings.size(); ++i) {
    const Finding& finding = document.findings[i];
    const Badge badge = badge_of(finding.kind);
    (i < kFirstFindings ? items : more) +=
        fmt::format("<li class=\"{}\"><span class=\"badge\">{}</span><span>{}</span>{}</li>\n", badge.css, badge.text,
                    html_sentence(sentence_of(finding)), figure_link(document, finding.figure, "Figure"));
  }
  if (!more.empty()) {
    more = fmt::format("<details><summary>{} more</summary><ol class=\"findings card\">\n{}</ol></details>\n",
                       document.findings.size() - kFirstFindings, more);
  }
  return fmt::format("<section id=\"findings\"><h2>Findings</h2><ol class=\"findings card\">\n{}</ol>{}</section>\n",
                     items, more);
}

std::string guidelines(const Document& document) {
  if (document.guidelines.empty()) return "";
  std::string items;
  for (const Guideline& guideline : document.guidelines) {
    items += fmt::format("<div class=\"guideline card\"><p>{} {}</p>{}</div>\n", xml_escaped(guideline.text),
                         figure_link(document, guideline.figure, "Figure"), html_command(guideline.command));
  }
  return fmt::format(
      "<section id=\"guidelines\"><h2>Guidelines for this machine</h2><div class=\"guidelines\">\n{}</div></section>\n",
      items);
}

std::string section_text(const Section& section, std::size_t number) {
  std::string text = fmt::format("<section id=\"section-{}\"><h2>{}</h2>\n", number, xml_escaped(section.title));
  if (!section.question.empty()) text += fmt::format("<p class=\"question\">{}</p>\n", xml_escaped(section.question));
  if (!section.source.empty())
    text += fmt::format("<p class=\"source\"><b>Earlier results:</b> {}</p>\n", xml_escaped(section.source));
  if (section.figures.empty()) text += "<p class=\"note\">Nothing to draw: none of its runs was measured.</p>\n";
  for (const Figure& figure : section.figures) text += html_figure(figure);
  return text + "</section>\n";
}

std::string contents(const Document& document) {
  std::string items;
  const auto add = [&](const std::string& id, const std::string& title, const std::string& below = "") {
    items += fmt::format("<li><a href=\"#{}\">{}</a>{}</li>\n", id, xml_escaped(title), below);
  };
  if (!document.findings.empty()) add("findings", "Findings");
  if (!document.guidelines.empty()) add("guidelines", "Guidelines");
  for (std::size_t i = 0; i < document.sections.size(); ++i) {
    std::string below;
    for (const Figure& figure : document.sections[i].figures)
      below += fmt::format("<li><a href=\"#{}\">{}</a></li>", figure.id, xml_escaped(figure.title));
    add(fmt::format("section-{}", i + 1), document.sections[i].title,
        below.empty() ? std::string() : fmt::format("<ol>{}</ol>", below));
  }
  if (!document.runs.rows.empty()) add("runs", "All runs");
  add("method", "How to read this");
  return fmt::format("<nav class=\"contents\" aria-label=\"Contents\"><ol>\n{}</ol></nav>\n", items);
}

std::string header(const Document& document) {
  std::string facts;
  for (const auto& [name, value] : document.facts)
    facts += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", xml_escaped(name), xml_escaped(value));
  return fmt::format(
      "<header class=\"top\"><div class=\"brand\"><span>Trireme</span><button type=\"button\" "
      "class=\"theme\">Theme</button></div>\n<h1>{}</h1>\n<dl class=\"facts\">{}</dl></header>\n",
      xml_escaped(document.title), facts);
}

std::string runs(const Document& document) {
  if (document.runs.rows.empty()) return "";
  return fmt::format(
      "<section id=\"runs\"><h2>All runs</h2><details><summary>{} runs</summary>{}</details></section>\n",
      document.runs.rows.size(), html_table(document.runs, "All runs"));
}

}  // namespace

std::string to_html(const Document& document) {
  std::string text = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  text += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", kPolicy);
  text +=
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n";
  text +=
      fmt::format("<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n", xml_escaped(document.title), kPageStyle);
  text += "<a class=\"skip\" href=\"#content\">Skip to the content</a>\n<div class=\"page\">\n";
  text += header(document) + contents(document) + "<main id=\"content\">\n";
  text += warnings(document) + findings(document) + guidelines(document);
  for (std::size_t i = 0; i < document.sections.size(); ++i) text += section_text(document.sections[i], i + 1);
  text += runs(document) + kMethod;
  text += "<footer>Made by <code>trireme report</code>. This page is self-contained and loads nothing.</footer>\n";
  return text + fmt::format("</main>\n</div>\n<script>\n{}</script>\n</body>\n</html>\n", kPageScript);
}

}  // namespace trireme::report
