// The texts that pages are made of, as the build has found them. Used by to_html(), and by `doctor`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trireme::report {

std::string_view page_style();
std::string_view page_script();
std::string_view chart_script();  // Chart.js; empty: this build is without

// {"Chart.js", "3.9.1"}; empty: this build is without.
std::vector<std::pair<std::string, std::string>> page_library_versions();

}  // namespace trireme::report
