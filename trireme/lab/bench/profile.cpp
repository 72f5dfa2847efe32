#include "trireme/lab/bench/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "trireme/base/text_table.hpp"
#include "trireme/plan/program.hpp"

namespace trireme::lab {
namespace {

void sort_by_time(std::vector<ProfileRow>& rows) {
  std::ranges::stable_sort(rows, std::ranges::greater{}, &ProfileRow::seconds);
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

bool overlap(const StepProfile& profile) { return profile.inter_threads > 1; }

// The reference for shares.
double whole_seconds(const StepProfile& profile) {
  return overlap(profile) ? profile.tracked_seconds : profile.step_seconds;
}

// Time and rates, the columns of both tables. whole: reference of the share; 0: none.
std::vector<std::string> figures(const ProfileRow& row, double whole, const perf::Peak& peak) {
  const bool has_flops = row.flops > 0 && row.seconds > 0;
  return {fmt::format("{:.3f}", row.seconds * 1e3), percent(row.seconds, whole), rate(row.flops, row.seconds),
          has_flops ? percent(row.flops / row.seconds, peak.flops_per_second) : "-", rate(row.bytes, row.seconds)};
}

TextTable make_table(std::vector<Column> columns, const StepProfile& profile) {
  for (const char* title : {"ms/step", overlap(profile) ? "of sum" : "of step", "GFLOP/s", "of peak", "GB/s"})
    columns.push_back({title, Align::right});
  return TextTable(std::move(columns));
}

void add(TextTable& table, std::vector<std::string> cells, const std::vector<std::string>& more) {
  cells.insert(cells.end(), more.begin(), more.end());
  table.add_row(std::move(cells));
}

TextTable instruction_table(const StepProfile& profile, const perf::Peak& peak, std::size_t shown) {
  TextTable table =
      make_table({{"instruction", Align::left}, {"operation", Align::left}, {"implementation", Align::left}}, profile);
  for (std::size_t i = 0; i < shown; ++i) {
    const ProfileRow& row = profile.instructions[i];
    add(table, {row.name, row.operation, row.implementation}, figures(row, whole_seconds(profile), peak));
  }
  return table;
}

TextTable operation_table(const StepProfile& profile, const perf::Peak& peak) {
  const double whole = whole_seconds(profile);
  TextTable table = make_table({{"operation", Align::left}, {"count", Align::right}}, profile);
  ProfileRow step{.seconds = profile.step_seconds};
  for (const ProfileRow& row : profile.operations) {
    add(table, {row.operation, fmt::format("{}", row.instructions)}, figures(row, whole, peak));
    step.flops += row.flops;
    step.bytes += row.bytes;
  }
  table.add_rule();
  if (overlap(profile)) {
    add(table, {"sum", ""}, figures({.seconds = profile.tracked_seconds}, whole, peak));
  } else {
    const ProfileRow untracked{.seconds = std::max(0.0, profile.step_seconds - profile.tracked_seconds)};
    add(table, {"untracked", ""}, figures(untracked, whole, peak));
  }
  // The step is not part of a sum.
  add(table, {"step", fmt::format("{}", profile.instructions.size())},
      figures(step, overlap(profile) ? 0 : whole, peak));
  return table;
}

}  // namespace

StepProfile make_profile(const Program& program, const Executable::Profile& profile, double step_seconds,
                         int inter_threads, int groups) {
  StepProfile result;
  result.inter_threads = inter_threads;
  result.step_seconds = step_seconds;
  const double runs = static_cast<double>(std::max<std::int64_t>(profile.runs, 1));
  for (std::size_t i = 0; i < program.instructions.size() && i < profile.seconds.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    const double seconds = profile.seconds[i] / runs;
    result.tracked_seconds += seconds;
    if (instruction.update) result.update_seconds += seconds;
    // Instructions that run only after variables were changed by hand are not part of a step.
    if (instruction.once && seconds == 0) continue;
    const double share = instruction.update ? 1.0 / groups : 1.0;
    result.instructions.push_back({.name = instruction.name,
                                   .operation = instruction.operation,
                                   .implementation = instruction.implementation,
                                   .seconds = seconds,
                                   .flops = share * instruction.cost.flops,
                                   .bytes = share * instruction.cost.bytes});
  }
  sort_by_time(result.instructions);
  result.operations = by_operation(result.instructions);
  return result;
}

std::string to_text(const StepProfile& profile, const perf::Peak& peak, std::int64_t rows) {
  const std::size_t shown = std::min(profile.instructions.size(), static_cast<std::size_t>(rows));
  std::string title = fmt::format("Profile: the {} of {} instructions that take the most time (--profile-rows)", shown,
                                  profile.instructions.size());
  if (overlap(profile)) {
    title += fmt::format("; up to {} run at the same time: shares are of the summed instruction time, not of the step",
                         profile.inter_threads);
  }
  return fmt::format("\n{}\n{}\nBy operation\n{}", title, instruction_table(profile, peak, shown).text(),
                     operation_table(profile, peak).text());
}

}  // namespace trireme::lab
