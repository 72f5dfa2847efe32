// The same work under Trireme and under other frameworks: a study whose every cell is run by each of them, in turns.
// Made by `trireme compare` from a plan and from what the peers can do; run by Sweep, and looked at here afterwards.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/lab/peers.hpp"
#include "trireme/lab/study_cells.hpp"
#include "trireme/lab/study_folder.hpp"

namespace trireme::lab {

// One of those that Trireme is compared with.
struct Contestant {
  std::string label;  // "pytorch", or "pytorch 2.15.0" beside another version: the records' study.framework
  std::string framework, version;
  const PeerCatalog* catalog = nullptr;
  std::vector<PeerConfiguration> configurations;  // the first that can do a cell's work does it
};

struct Field {
  std::vector<Contestant> contestants;
  std::vector<std::string> missing;  // what was asked for and is not there, in sentences
};

// `wanted` are names of frameworks and of configurations, or "all" for every configuration. The catalogs, one for each
// interpreter, outlive the result. Error(bad_input) for a name that nobody knows.
Field choose_contestants(const std::vector<PeerCatalog>& catalogs, const std::vector<std::string>& wanted);

struct FrameworkComparison {
  std::vector<StudyCell> cells;
  std::vector<std::vector<std::size_t>> groups;  // cells of the same work, Trireme's first
  std::vector<std::string> left_out;             // what a contestant cannot do, in sentences
};

// Sets what the work does not, so that it means the same to all; `cores` are shared by its workers.
void fill_in(Configuration& configuration, int cores);

// `works` are the cells of a plan; `only_trireme` is set for Trireme's own runs. Error(bad_input) where a network or an
// option is none that peers have, Error(unavailable) where nobody is left to compare with.
FrameworkComparison make_comparison(const std::vector<StudyCell>& works, const std::vector<Contestant>& contestants,
                                    const Configuration& only_trireme, int cores);

// How many times the speed of another we have.
struct Ratio {
  double of_medians = 0;
  double lowest = 0, highest = 0;  // of the ratios within a round
  std::size_t rounds = 0;
};
// Speeds by round; nothing where a run failed or was not made. Nothing where no round has both.
using Speeds = std::vector<std::optional<double>>;
std::optional<Ratio> ratio_of(const Speeds& ours, const Speeds& theirs);

// What the records of a cell say.
struct CellFigures {
  Speeds images_per_second;  // by round
  std::vector<double> peak_rss_bytes;
  std::vector<std::string> warnings;  // each once
};
CellFigures read_figures(const std::filesystem::path& folder, const StudyCell& cell, int rounds);

// Who takes part, in which version and configuration; who does not, and why.
std::string field_text(const Field& field, const std::vector<std::string>& notes);

// A row for each work and framework: speed, memory, and how many times its speed Trireme has.
std::string ratio_table(const FrameworkComparison& comparison, const std::filesystem::path& folder, int rounds);

// What is the same and what differs, a sentence to a line: of every network that is compared, and of the measurement.
std::vector<std::string> difference_lines(const FrameworkComparison& comparison,
                                          const std::vector<Contestant>& contestants);

}  // namespace trireme::lab
