// A document or a figure of it as text for the world outside: CSV, Markdown, SVG, JSON, and a page. Used by `trireme
// report`. Names of hosts, files and options are other people's text: each renderer escapes it.
#pragma once

#include <string>
#include <string_view>

#include "trireme/base/json.hpp"
#include "trireme/report/document.hpp"

namespace trireme::report {

// Commas, quotes where they are needed, numbers with every digit.
std::string to_csv(const FigureTable& table);

// With drawings: refers to `ID.svg` beside it for each figure.
std::string to_markdown(const Document& document, bool with_drawings);

// A drawing that stands for itself, on a white ground.
std::string to_svg(const Figure& figure);
// The same as an element of a page, in the colours of its style, without title and machine.
std::string to_inline_svg(const Figure& figure);

// For programs: findings, guidelines, names of the records.
Json to_json(const Document& document);

// One file that needs no other and asks for none.
std::string to_html(const Document& document);

// For SVG and HTML: &, <, > and quotes as entities; control characters, which XML does not have, as spaces.
std::string xml_escaped(std::string_view text);

}  // namespace trireme::report
