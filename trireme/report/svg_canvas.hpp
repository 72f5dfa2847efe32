// The few shapes that drawings are made of, as SVG text. Used by svg.cpp.
#pragma once

#include <string>
#include <string_view>

namespace trireme::report {

// &, <, > and quotes as entities; control characters, which XML does not have, as spaces.
std::string xml_escaped(std::string_view text);

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

}  // namespace trireme::report
