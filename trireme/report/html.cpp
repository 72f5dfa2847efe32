#include <fmt/format.h>

#include <regex>

#include "trireme/base/error.hpp"
#include "trireme/report/html_parts.hpp"
#include "trireme/report/page_texts.hpp"
#include "trireme/report/renderers.hpp"
#include "trireme/report/svg_canvas.hpp"

namespace trireme::report {
namespace {

// The browser itself refuses whatever the page would ask for.
constexpr const char* kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'";

constexpr const char* kMethod = R"(<section id="method"><h2>How to read this</h2><div class="method">
<p><b>Figures</b> are medians over runs. Intervals hold the true median with 95 % confidence, whatever the distribution;
fewer than 6 runs cannot say that much, and have their range instead. Images per second count all workers together.</p>
<p><b>Differences</b> are claimed only where the rank-sum test of Mann and Whitney supports them (two-sided, p below 0.05,
counted over all orders of the runs, ties included) and the medians agree with it. Where one question is asked of several
configurations at once, p is corrected as Holm does. Repeats inside one process count as one run. “Open” means that no
difference could be shown, or that there were not enough runs to show any: with three runs on each side, p cannot fall
below 0.1.</p>
<p><b>Ratios</b> are those of medians; their intervals are the factors that the rank test does not refuse. Whether an
<b>option</b> matters at all is judged over all its values at once (Kruskal and Wallis, by exchanging runs at random), all
other options equal. What <b>input</b> costs is judged by the signs of what each run lost, one-sided.</p></div></section>
)";

constexpr std::size_t kFirstFindings = 10;  // that a reader sees at once

struct Badge {
  const char* css;
  const char* text;
};

Badge badge_of(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::shown:
      return {"shown", "Supported"};
    case Finding::Kind::worse:
      return {"worse", "Worse"};
    case Finding::Kind::not_shown:
      return {"not-shown", "Open"};
    case Finding::Kind::fact:
      break;
  }
  return {"fact", "Measured"};
}

// Ratios, speeds and shares stand out of the sentence, p values stand back.
std::string emphasised(const std::string& sentence) {
  // The library's expressions call themselves for every character: not for texts without end.
  if (sentence.size() > 2000) return xml_escaped(sentence);
  static const std::regex numbers(R"((\d+\.\d+x|\d[\d,.]* images/s|\d+ % of ideal|\d+\.\d % of the speed))");
  static const std::regex p_values(R"(\(p [^()]*\))");
  const std::string strong = std::regex_replace(xml_escaped(sentence), numbers, "<strong>$1</strong>");
  return std::regex_replace(strong, p_values, "<span class=\"p\">$&</span>");
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
  return fmt::format("<aside class=\"warnings\" role=\"note\"><h2>Mind this</h2><ul>{}</ul></aside>\n", items);
}

std::string findings(const Document& document) {
  if (document.findings.empty()) return "";
  std::string items, more;
  for (std::size_t i = 0; i < document.findings.size(); ++i) {
    const Finding& finding = document.findings[i];
    const Badge badge = badge_of(finding.kind);
    (i < kFirstFindings ? items : more) +=
        fmt::format("<li class=\"{}\"><span class=\"badge\">{}</span><span>{}</span>{}</li>\n", badge.css, badge.text,
                    emphasised(finding.text), figure_link(document, finding.figure, "Figure"));
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
    text += fmt::format("<p class=\"source\"><b>Found before:</b> {}</p>\n", xml_escaped(section.source));
  if (section.figures.empty()) text += "<p class=\"note\">Nothing to draw: no run of it was measured.</p>\n";
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

std::string data_script(const Document& document) {
  std::string list;
  for (const Figure* figure : document.figures()) list += (list.empty() ? "" : ",\n") + chart_data(*figure);
  return fmt::format("<script type=\"application/json\" id=\"report-data\">[{}]</script>\n", list);
}

}  // namespace

std::string to_html(const Document& document) {
  if (chart_script().empty()) {
    fail(ErrorKind::unavailable,
         "this build makes no HTML: it was made without Chart.js (package libjs-chart.js; install it and build again); "
         "--format markdown, csv and svg work");
  }
  std::string text = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  text += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", kPolicy);
  text +=
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n";
  text += fmt::format("<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n", xml_escaped(document.title),
                      page_style());
  text += "<a class=\"skip\" href=\"#content\">Skip to the content</a>\n<div class=\"page\">\n";
  text += header(document) + contents(document) + "<main id=\"content\">\n";
  text += "<noscript><p>Figures need JavaScript; every number is in the tables.</p></noscript>\n";
  text += warnings(document) + findings(document) + guidelines(document);
  for (std::size_t i = 0; i < document.sections.size(); ++i) text += section_text(document.sections[i], i + 1);
  text += runs(document) + kMethod;
  text += "<footer>Made by <code>trireme report</code>. This page is complete: it asks for nothing.</footer>\n";
  text += "</main>\n</div>\n" + data_script(document);
  text += fmt::format("<script>{}</script>\n<script>\n{}</script>\n</body>\n</html>\n", chart_script(), page_script());
  return text;
}

}  // namespace trireme::report
