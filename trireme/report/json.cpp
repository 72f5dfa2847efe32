#include <fmt/format.h>

#include <array>

#include "trireme/base/fields.hpp"
#include "trireme/report/finding_text.hpp"
#include "trireme/report/renderers.hpp"

namespace trireme::report {
namespace {

struct IntervalFields {
  double low, high;
  std::string kind;
};

struct FindingFields {
  std::string kind, topic;
  std::vector<std::string> subjects;
  std::string verdict;
  std::optional<double> ratio;
  std::optional<IntervalFields> interval;
  std::optional<double> p;
  std::string text, figure;
};

struct ReportFields {
  std::string schema = "trireme.report/1", title;
  std::vector<FindingFields> findings = {};
  std::vector<Guideline> guidelines;
  std::vector<std::string> files;
};

}  // namespace
}  // namespace trireme::report

namespace trireme {

template <>
inline constexpr auto kFields<report::IntervalFields> = [] {
  using T = report::IntervalFields;
  return std::tuple(field("low", &T::low), field("high", &T::high), field("kind", &T::kind));
}();

template <>
inline constexpr auto kFields<report::FindingFields> = [] {
  using T = report::FindingFields;
  return std::tuple(field("kind", &T::kind), field("topic", &T::topic), field("subjects", &T::subjects),
                    field("verdict", &T::verdict, Presence::if_set), field("ratio", &T::ratio, Presence::if_set),
                    field("interval", &T::interval, Presence::if_set), field("p", &T::p, Presence::if_set),
                    field("text", &T::text), field("figure", &T::figure, Presence::if_set));
}();

template <>
inline constexpr auto kFields<report::Guideline> = [] {
  using T = report::Guideline;
  return std::tuple(field("text", &T::text), field("command", &T::command),
                    field("figure", &T::figure, Presence::if_set));
}();

template <>
inline constexpr auto kFields<report::ReportFields> = [] {
  using T = report::ReportFields;
  return std::tuple(field("schema", &T::schema), field("title", &T::title), field("findings", &T::findings),
                    field("guidelines", &T::guidelines), field("files", &T::files));
}();

}  // namespace trireme

namespace trireme::report {
namespace {

FindingFields fields_of(const Finding& finding) {
  constexpr std::array<const char*, 4> kKinds{"shown", "not_shown", "fact", "worse"};
  constexpr std::array<const char*, 4> kVerdicts{"larger", "smaller", "no_difference_shown", "too_few_runs"};
  constexpr std::array<const char*, std::variant_size_v<Claim>> kTopics{
      "fastest",  "pair",      "overall", "choice",  "input",     "step_time", "failures",
      "training", "bandwidth", "change",  "changes", "unchanged", "broken"};
  FindingFields fields{.kind = kKinds.at(static_cast<std::size_t>(finding.kind)),
                       .topic = kTopics.at(finding.claim.index()),
                       .subjects = finding.subjects,
                       .verdict = {},
                       .ratio = finding.ratio,
                       .interval = {},
                       .p = finding.p,
                       .text = text_of(finding),
                       .figure = finding.figure};
  if (finding.verdict) fields.verdict = kVerdicts.at(static_cast<std::size_t>(*finding.verdict));
  if (const auto& interval = finding.interval)
    fields.interval = {.low = interval->low, .high = interval->high, .kind = kind_text(*interval)};
  return fields;
}

}  // namespace

Json to_json(const Document& document) {
  ReportFields fields{.title = document.title, .guidelines = document.guidelines, .files = document.files};
  for (const Finding& finding : document.findings) fields.findings.push_back(fields_of(finding));
  return trireme::to_json(fields);
}

}  // namespace trireme::report
