// Compares Trireme with other frameworks: a study in which each of them runs every cell, in turns. Made by `trireme
// compare` from a plan and the peers' abilities, run by run_sweep(), evaluated here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/lab/compare/peers.hpp"
#include "trireme/lab/study/study_cells.hpp"
#include "trireme/lab/study/study_folder.hpp"

namespace trireme::lab {

// A framework that Trireme is compared with.
struct Contestant {
  std::string label;  // "pytorch", or "pytorch 2.15.0" if versions differ: study.framework in records
  std::string framework, version;
  const PeerCatalog* catalog = nullptr;
  std::vector<PeerConfiguration> configurations;  // the first that can do a cell's work does it
};

struct Field {
  std::vector<Contestant> contestants;
  std::vector<std::string> missing;  // requested but not available, in sentences
};

// `wanted` names frameworks and configurations, or "all" for every configuration. The catalogs, one per interpreter,
// must outlive the result. Error(bad_input) for an unknown name.
Field choose_contestants(const std::vector<PeerCatalog>& catalogs, const std::vector<std::string>& wanted);

struct FrameworkComparison {
  std::vector<StudyCell> cells;
  std::vector<std::vector<std::size_t>> groups;  // cells of the same work, Trireme's first
  std::vector<std::string> ways;                 // which version of whom runs how, in sentences
  std::vector<std::string> left_out;             // what a contestant cannot do, in sentences
};

// `works` are the cells of a plan; `only_trireme` is set for Trireme's own runs. Error(bad_input) if peers lack a
// network or option, Error(unavailable) if no contestant is left.
FrameworkComparison make_comparison(const std::vector<StudyCell>& works, const std::vector<Contestant>& contestants,
                                    const Configuration& only_trireme, int cores);

// Our speed divided by another's.
struct Ratio {
  double of_medians = 0;
  double lowest = 0, highest = 0;  // of the ratios within a round
  std::size_t rounds = 0;
};
// Speeds by round; nothing if a run failed or is missing. The ratio is nothing if no round has both.
using Speeds = std::vector<std::optional<double>>;
std::optional<Ratio> ratio_of(const Speeds& ours, const Speeds& theirs);

// Who takes part or not.
std::string field_text(const Field& field, const FrameworkComparison& comparison,
                       const std::vector<std::string>& notes);

// A row per work and framework: speed, memory, and Trireme's speed as a multiple of it.
std::string ratio_table(const FrameworkComparison& comparison, const std::filesystem::path& folder, int rounds);

// What is the same and what differs, a sentence per line: for every network compared, and for the measurement.
std::vector<std::string> difference_lines(const FrameworkComparison& comparison,
                                          const std::vector<Contestant>& contestants);

}  // namespace trireme::lab
