#include "trireme/report/renderers.hpp"
#include "trireme_page_texts.hpp"

namespace trireme::report {

std::string_view page_style() { return kPageStyle; }
std::string_view page_script() { return kPageScript; }
std::string_view chart_script() { return kChartScript; }

std::vector<std::pair<std::string, std::string>> page_library_versions() {
  constexpr std::string_view kMark = "Chart.js v";  // in its first lines
  const std::size_t mark = kChartScript.find(kMark);
  if (kChartScript.empty()) return {};
  if (mark == std::string_view::npos) return {{"Chart.js", "unknown"}};
  const std::size_t begin = mark + kMark.size();
  return {{"Chart.js", std::string(kChartScript.substr(begin, kChartScript.find_first_of(" \r\n", begin) - begin))}};
}

}  // namespace trireme::report
