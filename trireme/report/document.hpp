// The content of a report: findings, guidelines, sections with figures, the runs. Made once from records; the renderers
// (renderers.hpp) turn it into a page, text, tables or drawings.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trireme/report/figure.hpp"
#include "trireme/report/study.hpp"

namespace trireme::report {

// A sentence with its number, and the figure that shows it.
struct Finding {
  enum class Kind : std::uint8_t {
    shown,      // a difference that the test supports
    not_shown,  // no difference shown, or too few runs
    fact,       // a number without a comparison
    worse,      // a supported difference for the worse
  };
  Kind kind = Kind::fact;
  std::string text;
  std::string figure = {};  // id; empty: none
};

// A recommendation for this machine.
struct Guideline {
  std::string text, command, figure = {};
};

struct Section {
  std::string title, question = {}, source = {};
  std::vector<Figure> figures;
};

struct Document {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  // machine, build, runs, when
  std::vector<std::string> warnings;
  std::vector<Finding> findings;
  std::vector<Guideline> guidelines;
  std::vector<Section> sections;
  FigureTable runs;  // a row per run, including failures

  std::vector<const Figure*> figures() const;
  const Figure* figure(const std::string& id) const;  // null: none
};

Document make_document(const RecordSet& records);

FigureTable runs_table(const std::vector<Study>& studies);  // a row per run
std::vector<std::pair<std::string, std::string>> facts_of(const RecordSet& records);
std::vector<std::string> warnings_of(const RecordSet& records, const std::vector<Study>& studies);

}  // namespace trireme::report
