#include <array>

#include "trireme/base/fields.hpp"
#include "trireme/report/finding_text.hpp"
#include "trireme/report/renderers.hpp"

namespace trireme {

template <>
inline constexpr auto kFields<perf::Interval> = [] {
  using T = perf::Interval;
  return std::tuple(field("low", &T::low), field("high", &T::high));
}();

template <>
inline constexpr auto kFields<report::Finding> = [] {
  using T = report::Finding;
  return std::tuple(field("subjects", &T::subjects), field("ratio", &T::ratio, Presence::if_set),
                    field("interval", &T::interval, Presence::if_set), field("p", &T::p, Presence::if_set),
                    field("figure", &T::figure, Presence::if_set));
}();

template <>
inline constexpr auto kFields<report::Guideline> = [] {
  using T = report::Guideline;
  return std::tuple(field("text", &T::text), field("command", &T::command),
                    field("figure", &T::figure, Presence::if_set));
}();

namespace report {
namespace {

// The list of its fields, and what programs need in words.
Json finding_json(const Finding& finding) {
  constexpr std::array<const char*, 4> kKinds{"shown", "not_shown", "fact", "worse"};
  constexpr std::array<const char*, 4> kVerdicts{"larger", "smaller", "no_difference_shown", "too_few_runs"};
  constexpr std::array<const char*, std::variant_size_v<Claim>> kTopics{
      "fastest",  "pair",      "overall", "choice",  "input",     "step_time", "failures",
      "training", "bandwidth", "change",  "changes", "unchanged", "broken"};
  Json json{{"kind", kKinds.at(static_cast<std::size_t>(finding.kind))},
            {"topic", kTopics.at(finding.claim.index())},
            {"text", text_of(finding)}};
  if (finding.verdict) json["verdict"] = kVerdicts.at(static_cast<std::size_t>(*finding.verdict));
  json.update(value_to_json(finding));
  if (finding.interval) json["interval"]["kind"] = kind_text(*finding.interval);
  return json;
}

}  // namespace

Json to_json(const Document& document) {
  Json findings = Json::array();
  for (const Finding& finding : document.findings) findings.push_back(finding_json(finding));
  return {{"schema", "trireme.report/1"},
          {"title", document.title},
          {"findings", std::move(findings)},
          {"guidelines", value_to_json(document.guidelines)},
          {"files", document.files}};
}

}  // namespace report
}  // namespace trireme
