// A document or a figure of it as text for the world outside: CSV, Markdown, SVG, and a page. Used by `trireme report`.
// Names of hosts, files and options are other people's text: each renderer escapes it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/report/document.hpp"

namespace trireme::report {

// Commas, quotes where they are needed, numbers with every digit.
std::string to_csv(const FigureTable& table);

// With drawings: refers to `ID.svg` beside it for each figure.
std::string to_markdown(const Document& document, bool with_drawings);

// A drawing that stands for itself, on a white ground.
std::string to_svg(const Figure& figure);

// One file that needs no other and asks for none. Error(unavailable) where the build has not found Chart.js.
std::string to_html(const Document& document);
// What the script of the page draws, as JSON that may stand inside a script element.
std::string chart_data(const Figure& figure);

// The texts that pages are made of, as the build has found them.
std::string_view page_style();
std::string_view page_script();
std::string_view chart_script();  // Chart.js; empty: this build is without
// {"Chart.js", "3.9.1"}; empty: this build is without.
std::vector<std::pair<std::string, std::string>> page_library_versions();

// For SVG and HTML: &, <, > and quotes as entities; control characters, which XML does not have, as spaces.
std::string xml_escaped(std::string_view text);

}  // namespace trireme::report
