#include "trireme/lab/study/study_record.hpp"

#include "trireme/base/error.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/report/facts.hpp"
#include "trireme/report/json_fields.hpp"

namespace trireme::lab {
namespace {

// As it reads back from a file.
std::string kept_text(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

Json identity_of(const StudyPlan& plan, const StudyCell& cell, int repeat) {
  return {{"name", plan.name},
          {"cell", cell.varied},
          {"repeat", repeat},
          {"framework", cell.framework.empty() ? "trireme" : cell.framework}};
}

void complete_record(TrialResult& trial, Json study) {
  Json& record = trial.record;
  if (report::text_field(record, {"machine", "host"}).empty()) {  // of another framework, which may know its GPU
    Json machine = report::to_json(perf::read_machine(trial.load_before));
    if (const Json known = report::field(record, {"machine"}); known.is_object()) machine.update(known);
    record["machine"] = std::move(machine);
  }
  study["seconds"] = trial.seconds;
  record["study"] = std::move(study);
}

TrialResult run_into(const StudyFolder& folder, const RunName& name, TrialRequest request, Json study,
                     std::stop_token stop) {
  folder.note("start " + to_string(name));
  request.scratch_folder = folder.scratch_folder();
  request.log_file = folder.log_file(name);
  TrialResult trial = run_trial(request, std::move(stop));
  if (trial.ending == TrialResult::Ending::interrupted) {
    folder.note("interrupted " + to_string(name));
    return trial;
  }
  complete_record(trial, std::move(study));
  folder.write_run(name, trial.record);
  folder.note(fmt::format("{} {}", has_failed(trial.record) ? "failed" : "measured", to_string(name)));
  return trial;
}

std::optional<Json> find_record(const std::filesystem::path& folder, const RunName& run, const Json& study) {
  auto record = read_run(folder, run);
  if (!record) return std::nullopt;
  constexpr const char* kAdvice = "move it elsewhere, or give another --out";
  for (const auto& [key, expected] : study.items()) {
    const std::string found = kept_text(report::field(*record, {"study", key.c_str()}));
    if (found == kept_text(expected)) continue;
    bad_input("{} is the record of another run: its study.{} is {}, not {}; {}", run_file(folder, run).string(), key,
              found, kept_text(expected), kAdvice);
  }
  if (!has_failed(*record) && !(images_per_second(*record) > 0)) {
    bad_input("{} has neither a speed nor an error; {}", run_file(folder, run).string(), kAdvice);
  }
  return record;
}

}  // namespace trireme::lab
