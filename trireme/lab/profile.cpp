#include "trireme/lab/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "trireme/report/table.hpp"

namespace trireme::lab {
namespace {

using report::Align;

void sort_by_time(std::vector<ProfileRow>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
}

std::vector<ProfileRow> by_operation(const std::vector<ProfileRow>& instructions) {
  std::map<std::string, ProfileRow> totals;
  for (const ProfileRow& row : instructions) {
    ProfileRow& total =
        totals.try_emplace(row.operation, ProfileRow{.operation = row.operation, .instructions = 0}).first->second;
    total.instructions += row.instructions;
    total.seconds += row.seconds;
    total.flops += row.flops;
    total.bytes += row.bytes;
  }
  std::vector<ProfileRow> rows;
  for (auto& [operation, total] : totals) rows.push_back(std::move(total));
  sort_by_time(rows);
  return rows;
}

std::string rate(double amount, double seconds) {
  return amount > 0 && seconds > 0 ? fmt::format("{:.1f}", amount / seconds / 1e9) : "-";
}

std::string percent(double part, double whole) { return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "-"; }

// Time and rates, the columns that both tables share.
std::vector<std::string> figures(const ProfileRow& row, double step_seconds, const perf::Peak& peak) {
  const bool has_flops = row.flops > 0 && row.seconds > 0;
  return {fmt::format("{:.3f}", row.seconds * 1e3), percent(row.seconds, step_seconds), rate(row.flops, row.seconds),
          has_flops ? percent(row.flops / row.seconds, peak.flops_per_second) : "-", rate(row.bytes, row.seconds)};
}

report::Table make_table(std::vector<report::Column> columns) {
  for (const char* title : {"ms/step", "of step", "GFLOP/s", "of peak", "GB/s"})
    columns.push_back({title, Align::right});
  return report::Table(std::move(columns));
}

void add(report::Table& table, std::vector<std::string> cells, const std::vector<std::string>& more) {
  cells.insert(cells.end(), more.begin(), more.end());
  table.add_row(std::move(cells));
}

}  // namespace

StepProfile make_profile(const Program& program, const Executable::Profile& profile, double step_seconds) {
  StepProfile result;
  result.step_seconds = step_seconds;
  const double runs = static_cast<double>(std::max<std::int64_t>(profile.runs, 1));
  for (std::size_t i = 0; i < program.instructions.size() && i < profile.seconds.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    const double seconds = profile.seconds[i] / runs;
    result.tracked_seconds += seconds;
    if (instruction.update) result.update_seconds += seconds;
    // What runs only when variables have changed by hand is no work of a step.
    if (instruction.once && seconds == 0) continue;
    result.instructions.push_back({.name = instruction.name,
                                   .operation = instruction.operation,
                                   .implementation = instruction.implementation,
                                   .seconds = seconds,
                                   .flops = instruction.cost.flops,
                                   .bytes = instruction.cost.bytes});
  }
  sort_by_time(result.instructions);
  result.operations = by_operation(result.instructions);
  return result;
}

std::string to_text(const StepProfile& profile, const perf::Peak& peak, std::int64_t rows) {
  const std::size_t shown = std::min(profile.instructions.size(), static_cast<std::size_t>(rows));
  report::Table instructions =
      make_table({{"instruction", Align::left}, {"operation", Align::left}, {"implementation", Align::left}});
  for (std::size_t i = 0; i < shown; ++i) {
    const ProfileRow& row = profile.instructions[i];
    add(instructions, {row.name, row.operation, row.implementation}, figures(row, profile.step_seconds, peak));
  }

  report::Table operations = make_table({{"operation", Align::left}, {"count", Align::right}});
  for (const ProfileRow& row : profile.operations) {
    add(operations, {row.operation, fmt::format("{}", row.instructions)}, figures(row, profile.step_seconds, peak));
  }
  operations.add_rule();
  const ProfileRow untracked{.seconds = std::max(0.0, profile.step_seconds - profile.tracked_seconds)};
  add(operations, {"untracked", ""}, figures(untracked, profile.step_seconds, peak));
  ProfileRow step{.seconds = profile.step_seconds};
  for (const ProfileRow& row : profile.operations) {
    step.flops += row.flops;
    step.bytes += row.bytes;
  }
  add(operations, {"step", fmt::format("{}", profile.instructions.size())}, figures(step, profile.step_seconds, peak));

  return fmt::format("\nProfile: the {} of {} instructions that take most time (--profile-rows)\n{}\nBy operation\n{}",
                     shown, profile.instructions.size(), instructions.text(), operations.text());
}

}  // namespace trireme::lab
