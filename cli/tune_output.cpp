#include "cli/tune_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "trireme/base/text_table.hpp"
#include "trireme/lab/study/duration.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::cli {
namespace {

constexpr std::array<std::string_view, 3> kAlwaysTold{"workers", "num-intra-threads", "batch-size"};

std::string objective_text(const lab::TuneObjective& objective) {
  switch (objective.goal) {
    case lab::TuneObjective::Goal::images_per_second:
      return "most images per second";
    case lab::TuneObjective::Goal::images_per_second_at_batch:
      return fmt::format("most images per second at {} images per step of all workers", objective.effective_batch);
    case lab::TuneObjective::Goal::epoch_time:
      return fmt::format("least time for an epoch of {} images", objective.samples);
  }
  return "";
}

std::string marked_text(const lab::TuneSpace& space, std::size_t cell) {
  return short_text(space, cell) + (cell == space.default_cell ? " (default)" : "");
}

std::string finals_table(const lab::TuneSpace& space, const lab::TuneObjective& objective,
                         const lab::TuneResult& result) {
  TextTable table({{"finalist"},
                   {"median", Align::right},
                   {"slowest", Align::right},
                   {"fastest", Align::right},
                   {"runs", Align::right}});
  for (const std::size_t candidate : result.finalists) {
    const std::vector<double> scores = result.finals_of(candidate);
    const perf::Summary summary = perf::summarize(scores);
    const bool has_spread = scores.size() > 1;
    table.add_row({marked_text(space, candidate), objective.text(summary.median),
                   has_spread ? objective.text(summary.minimum) : "-",
                   has_spread ? objective.text(summary.maximum) : "-", std::to_string(scores.size())});
  }
  return table.text();
}

// "too few for a test (1 and 1; 4 each would be enough)"
std::string too_few_text(const lab::TuneResult& result, std::size_t first, std::size_t second) {
  return fmt::format("too few runs for a test ({} and {}; {} each would be enough)", result.finals_of(first).size(),
                     result.finals_of(second).size(), perf::runs_needed(1));
}

// Why this one and not the other finalist.
std::string margin_text(const lab::TuneSpace& space, const lab::TuneResult& result) {
  if (!result.margin) return "";
  const auto other =
      std::ranges::find_if(result.finalists, [&](std::size_t candidate) { return candidate != result.chosen; });
  if (*other == result.default_candidate) return "";  // that is the gain, shown elsewhere
  const perf::Comparison& margin = *result.margin;
  const std::string against = fmt::format("{:.3f} times {}", margin.ratio, short_text(space, *other));
  if (margin.is_supported()) return fmt::format("it is {} ({})\n", against, perf::p_text(margin.p));
  const std::string why = margin.verdict == perf::Verdict::too_few_runs
                              ? too_few_text(result, result.chosen, *other)
                              : fmt::format("the runs show no difference ({})", perf::p_text(margin));
  return fmt::format("its median is {}: {}{}\n", against, why,
                     result.took_simpler ? "; the simpler one was chosen" : "");
}

}  // namespace

std::string short_text(const lab::TuneSpace& space, std::size_t cell) {
  const Json &values = space.cells[cell].varied, &usual = space.cells[space.default_cell].varied;
  std::string text;
  for (const lab::Axis& axis : space.plan.axes) {
    const bool is_told_always = std::ranges::find(kAlwaysTold, axis.name) != kAlwaysTold.end();
    if (!is_told_always && values[axis.name] == usual[axis.name]) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis.name, lab::value_text(values[axis.name]));
  }
  return text;
}

std::string introduction(const lab::TuneSpace& space, const lab::TuneObjective& objective,
                         const lab::TuneSettings& settings) {
  std::string text = fmt::format("{}: {}\n", space.plan.name, objective_text(objective));
  for (const lab::Axis& axis : space.plan.axes) {
    std::vector<std::string> values;
    for (const lab::Choice& choice : axis.choices) values.push_back(lab::value_text(choice.value));
    text += fmt::format("  {}: {}\n", axis.name, fmt::join(values, ", "));
  }
  text += fmt::format("{} configurations make sense on {} cores; at most {} trials", space.cells.size(),
                      space.plan.machine.cores, settings.trials);
  if (settings.budget_seconds) text += fmt::format(", within {}", lab::duration_text(*settings.budget_seconds));
  return text + fmt::format("\ndefault: {}\n", short_text(space, space.default_cell));
}

std::string gain_text(const lab::TuneResult& result) {
  if (result.chosen == result.default_candidate) return "nothing tried beats the default";
  if (!result.gain) return "not compared with the default: there was no time for both";
  const perf::Comparison& gain = *result.gain;
  const std::string times = fmt::format("{:.3f} times the default", gain.ratio);
  if (gain.verdict == perf::Verdict::too_few_runs) {
    return fmt::format("not shown: the median is {}, with {}", times,
                       too_few_text(result, result.chosen, result.default_candidate));
  }
  const std::string figures =
      fmt::format("{} ({:.3f} to {:.3f}, {})", times, gain.interval.low, gain.interval.high, perf::p_text(gain));
  return gain.is_supported() ? figures : fmt::format("not shown: the median is {}", figures);
}

std::string conclusion(const lab::TuneSpace& space, const lab::TuneObjective& objective,
                       const lab::TuneResult& result) {
  if (result.samples.empty()) return "";
  if (result.interrupted) return fmt::format("best so far: {}\n", marked_text(space, result.chosen));
  std::string text;
  if (!result.finalists.empty()) text += fmt::format("\n{}", finals_table(space, objective, result));
  const bool is_shown = result.chosen == result.default_candidate || (result.gain && result.gain->is_supported());
  text += fmt::format("{}: {}\n{}", is_shown ? "best" : "chosen, although no gain was shown",
                      marked_text(space, result.chosen), margin_text(space, result));
  text += fmt::format("gain: {}\n", gain_text(result));
  if (result.out_of_time) text += "the budget was too short for all trials; raise --budget\n";
  return text;
}

}  // namespace trireme::cli
