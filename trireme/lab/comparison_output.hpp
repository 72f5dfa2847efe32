// What a comparison says to people: who takes part, the ratios with their spread, and what is not the same on all
// sides. Views of a Comparison and of its folder.
#pragma once

#include <string>
#include <vector>

#include "trireme/lab/comparison.hpp"

namespace trireme::lab {

// Who takes part, in which version and configuration; who does not, and why.
std::string field_text(const Field& field, const std::vector<std::string>& notes);

// A row for each work and framework: speed, memory, and how many times its speed Trireme has.
std::string ratio_table(const Comparison& comparison, const std::filesystem::path& folder, int rounds);

// What is the same and what differs, a sentence to a line: of every network that is compared, and of the measurement.
std::vector<std::string> difference_lines(const Comparison& comparison, const std::vector<Contestant>& contestants);

}  // namespace trireme::lab
