#include "trireme/report/svg_canvas.hpp"

#include <fmt/format.h>

namespace trireme::report {

std::string xml_escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return result;
}

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

}  // namespace trireme::report
