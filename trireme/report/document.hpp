// The content of a report: findings, guidelines, sections with figures, the runs. Made once from records; the renderers
// (renderers.hpp) turn it into a page, text, tables or drawings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "trireme/perf/comparison.hpp"
#include "trireme/record/training_record.hpp"
#include "trireme/report/figure.hpp"
#include "trireme/report/study.hpp"

namespace trireme::report {

// What a finding is about, with the numbers that only this claim has. Comments name the finding's subjects; findings
// with a test compare the first with the second.
namespace claim {
struct RunCounts {
  std::size_t first = 0, second = 0;
  int needed = 0;  // on each side, to show a difference
  bool has_repeats = false;
};
struct Fastest {  // a configuration and the next; the weakest of its comparisons with all others
  std::size_t configurations = 0;
  double images_per_second = 0;
  RunCounts runs;
};
struct Pair {         // two configurations
  std::string where;  // what they share: " with batch 8"
  std::optional<Point> efficiency = {};
  RunCounts runs = {};
};
struct Overall {  // two values of an option; the interval is that of the settings' ratios
  std::size_t settings = 0;
};
struct Choice {  // an option, the best value, the worst
  std::string where;
};
struct Input {  // the configuration that loses most speed to reading it
  std::size_t configurations = 0, runs = 0;
  double percent = 0;
};
struct StepTime {  // kind of work, its fastest configuration
  std::vector<std::pair<std::string, double>> percent;
};
struct Failures {  // study, error, file
  std::size_t failed = 0, runs = 0;
};
struct Training {  // name
  double loss = 0, epochs = 0;
  std::optional<double> top1, seconds, seconds_here;
  std::optional<record::Resumed> resumed;
};
struct Bandwidth {  // figure, series
  double bytes = 0, gigabytes_per_second = 0;
};
struct Change {};  // against a baseline: a configuration
struct Changes {   // all configurations together
  std::size_t configurations = 0;
};
struct Unchanged {  // those without a supported change
  std::size_t count = 0, configurations = 0;
};
struct Broken {};  // what was measured before, and why not now
}  // namespace claim

using Claim = std::variant<claim::Fastest, claim::Pair, claim::Overall, claim::Choice, claim::Input, claim::StepTime,
                           claim::Failures, claim::Training, claim::Bandwidth, claim::Change, claim::Changes,
                           claim::Unchanged, claim::Broken>;

// A claim as data, and the figure that shows it. finding_text.hpp says it.
struct Finding {
  enum class Kind : std::uint8_t {
    shown,      // a difference that the test supports
    not_shown,  // no difference shown, or too few runs
    fact,       // a number without a comparison
    worse,      // a supported difference for the worse
  };
  Kind kind = Kind::fact;
  Claim claim;
  std::vector<std::string> subjects = {};
  std::optional<perf::Verdict> verdict = {};  // none: there is no test
  std::optional<double> ratio = {}, p = {};
  std::optional<perf::Interval> interval = {};  // of the ratio
  std::string figure = {};                      // id; empty: none
};

// With the numbers of the comparison, and of the kind that suits its verdict.
Finding tested(Claim claim, std::vector<std::string> subjects, const perf::Comparison& comparison,
               const std::string& figure);

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
  FigureTable runs;                     // a row per run, including failures
  std::vector<std::string> files = {};  // of all records

  std::vector<const Figure*> figures() const;
  const Figure* figure(const std::string& id) const;  // null: none
};

Document make_document(const RecordSet& records);

FigureTable runs_table(const std::vector<Study>& studies);  // a row per run
std::vector<std::pair<std::string, std::string>> facts_of(const RecordSet& records);
std::vector<std::string> files_of(const RecordSet& records);
std::vector<std::string> warnings_of(const RecordSet& records, const std::vector<Study>& studies);

}  // namespace trireme::report
