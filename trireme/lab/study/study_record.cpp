#include "trireme/lab/study/study_record.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/json_fields.hpp"
#include "trireme/train/facts.hpp"

namespace trireme::lab {
namespace {

// As it reads back from a file.
std::string kept_text(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

record::StudyRun identity_of(const StudyPlan& plan, const StudyCell& cell, int repeat) {
  return {.name = plan.name,
          .cell = cell.varied,
          .repeat = repeat,
          .framework = cell.framework.empty() ? "trireme" : cell.framework};
}

void complete_record(TrialResult& trial, record::StudyRun study) {
  record::Machine& machine = trial.record.machine;
  if (machine.host.empty()) {  // of another framework, which may know its GPU
    Json gpu = std::move(machine.gpu);
    machine = train::this_machine(trial.load_before);
    machine.gpu = std::move(gpu);
  }
  study.seconds = trial.seconds;
  trial.record.study = std::move(study);
}

TrialResult run_into(const StudyFolder& folder, const RunName& name, TrialRequest request, record::StudyRun study,
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
  folder.note(fmt::format("{} {}", trial.record.error ? "failed" : "measured", to_string(name)));
  return trial;
}

std::optional<record::RunRecord> find_record(const std::filesystem::path& folder, const RunName& run,
                                             const record::StudyRun& study) {
  auto record = read_run(folder, run);
  if (!record) return std::nullopt;
  constexpr const char* kAdvice = "move it elsewhere, or give another --out";
  const Json kept = record->study ? to_json(*record->study) : Json(), wanted = to_json(study);
  for (const auto& [key, expected] : wanted.items()) {
    const std::string found = kept_text(field(kept, {key.c_str()}));
    if (found == kept_text(expected)) continue;
    bad_input("{} is the record of another run: its study.{} is {}, not {}; {}", run_file(folder, run).string(), key,
              found, kept_text(expected), kAdvice);
  }
  if (!record->error && !(record->images_per_second() > 0)) {
    bad_input("{} has neither a speed nor an error; {}", run_file(folder, run).string(), kAdvice);
  }
  return record;
}

}  // namespace trireme::lab
