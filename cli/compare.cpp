// `trireme compare`: the same work under Trireme and other frameworks, in turns, into a resumable folder.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/commands.hpp"
#include "cli/option_catalog.hpp"
#include "cli/study_plans.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/cluster/launch_hosts.hpp"
#include "trireme/lab/compare/comparison.hpp"
#include "trireme/lab/study/duration.hpp"

namespace trireme::cli {
namespace {

struct CompareArguments {
  std::vector<std::string> model, batch_size, device, frameworks{"pytorch", "tensorflow"}, python, set, trireme_set;
  std::string study, threads, workers, precision, num_batches, num_warmup_batches, max_seconds, out, budget, peers_dir;
  std::string run_limit = "30m";
  std::optional<std::int64_t> rounds;
  bool forward_only = false, both = false, dry_run = false, retry_failed = false;
};

// Command-line values replace the plan's. Several values make an axis.
void put(Json& plan, const std::string& option, const std::vector<std::string>& values,
         const lab::OptionCatalog& options) {
  if (values.empty() || values.front().empty()) return;
  plan["fixed"].erase(option);
  if (values.size() > 1 && !plan["vary"].contains(option)) plan["vary"][option] = Json::array();
  lab::set_option(plan, fmt::format("{}={}", option, fmt::join(values, ",")), options);
}

// Network and batch size vary even with one value, so that records and tables name them.
Json empty_plan(const CompareArguments& arguments) {
  return {{"schema", lab::kPlanSchema},
          {"name", "compare"},
          {"title", "The same work under other frameworks"},
          {"question", "How fast is Trireme compared with other frameworks on the same work?"},
          {"figure", arguments.both ? "forward_backward" : "bars"},
          {"fixed", Json::object()},
          {"vary", {{"model", {"resnet50"}}, {"batch-size", {16}}}}};
}

std::string name_of(const std::vector<std::string>& models) {
  return models.empty() ? "resnet50" : fmt::format("{}", fmt::join(models, "-"));
}

Json plan_json(const CompareArguments& arguments, const lab::OptionCatalog& options) {
  const std::string study = arguments.study == "cineca" ? "forward-backward" : arguments.study;  // its name here
  Json plan = study.empty() ? empty_plan(arguments) : find_plan(study);
  if (!plan.is_object()) return plan;  // the parser reports this error
  for (const char* part : {"fixed", "vary"}) {
    if (!plan.contains(part)) plan[part] = Json::object();
    if (!plan[part].is_object()) return plan;  // likewise
  }
  put(plan, "model", arguments.model, options);
  put(plan, "batch-size", arguments.batch_size, options);
  put(plan, "num-intra-threads", {arguments.threads}, options);
  put(plan, "workers", {arguments.workers}, options);
  put(plan, "precision", {arguments.precision}, options);
  put(plan, "device", arguments.device, options);
  put(plan, "num-batches", {arguments.num_batches}, options);
  put(plan, "num-warmup-batches", {arguments.num_warmup_batches}, options);
  put(plan, "max-seconds", {arguments.max_seconds}, options);
  if (arguments.forward_only) put(plan, "forward-only", {"true"}, options);
  if (arguments.both) put(plan, "forward-only", {"false", "true"}, options);
  for (const std::string& assignment : arguments.set) lab::set_option(plan, assignment, options);
  if (arguments.rounds) plan["repeats"] = *arguments.rounds;
  if (!arguments.budget.empty()) {
    lab::parse_duration(arguments.budget, "--budget");
    plan["budget"] = arguments.budget;
  }
  const std::string name = arguments.study.empty() ? name_of(arguments.model) : text_field(plan, {"name"});
  if (!name.empty()) plan["name"] = "compare-" + name;
  return plan;
}

lab::Configuration only_trireme(const CompareArguments& arguments, const lab::OptionCatalog& options) {
  Json holder{{"fixed", Json::object()}};
  for (const std::string& assignment : arguments.trireme_set) lab::set_option(holder, assignment, options);
  lab::Configuration configuration;
  for (const auto& [option, value] : holder["fixed"].items()) configuration.push_back({option, value});
  return configuration;
}

std::vector<lab::PeerCatalog> ask_all(const CompareArguments& arguments) {
  const std::filesystem::path folder = lab::find_peers_folder(arguments.peers_dir, cluster::this_binary());
  std::vector<std::string> pythons = arguments.python;
  if (pythons.empty()) pythons.push_back(lab::usual_python(folder));
  std::vector<lab::PeerCatalog> catalogs;
  for (const std::string& python : pythons) catalogs.push_back(lab::ask_peers(python, folder));
  return catalogs;
}

// What the folder keeps besides the plan: participants, options for Trireme only, and known differences.
Json kept_plan(const lab::StudyPlan& plan, const lab::Field& field, const lab::Configuration& own,
               const std::vector<std::string>& differences) {
  Json json = to_json(plan);
  json["command"] = "compare";
  json["frameworks"] = Json::object();
  for (const lab::Contestant& contestant : field.contestants) json["frameworks"][contestant.label] = contestant.version;
  json["trireme"] = Json::object();
  for (const lab::Setting& setting : own) json["trireme"][setting.option] = setting.value;
  json["differences"] = differences;
  return json;
}

int run_compare(const CompareArguments& arguments) {
  const lab::OptionCatalog options = option_catalog();
  const lab::StudyMachine machine = this_machine();
  const lab::StudyPlan plan = lab::parse_plan(plan_json(arguments, options),
                                              arguments.study.empty() ? "compare" : arguments.study, options, machine);
  const std::vector<lab::StudyCell> works = lab::cells_of(plan, options);
  const std::vector<lab::PeerCatalog> catalogs = ask_all(arguments);
  const lab::Field field = lab::choose_contestants(catalogs, arguments.frameworks);
  if (field.contestants.empty()) {
    fail(ErrorKind::unavailable, "nothing to compare with: {}", fmt::join(field.missing, "; "));
  }
  const lab::Configuration own = only_trireme(arguments, options);
  const lab::FrameworkComparison comparison = lab::make_comparison(works, field.contestants, own, machine.cores);
  const std::vector<std::string> differences = lab::difference_lines(comparison, field.contestants);
  const std::filesystem::path out = arguments.out.empty() ? plan.name : arguments.out;
  const lab::SweepSetup setup{.plan = plan,
                              .cells = comparison.cells,
                              .schedule = lab::rotating_schedule(comparison.groups, static_cast<int>(plan.repeats)),
                              .program = cluster::this_binary(),
                              .run_limit_seconds = lab::parse_duration(arguments.run_limit, "--run-limit"),
                              .retry_failed = arguments.retry_failed};
  const std::string same_and_different =
      fmt::format("\nWhat is the same, and what differs:\n- {}\n", fmt::join(differences, "\n- "));
  const StudyRun study{.setup = setup,
                       .out = out,
                       .plan = kept_plan(plan, field, own, differences),
                       .who = "a comparison",
                       .participants = lab::field_text(field, comparison, catalogs.front().notes),
                       .conclusion =
                           [&](const lab::SweepResult& result) {
                             return "\n" + lab::ratio_table(comparison, out, static_cast<int>(plan.repeats)) +
                                    shortfall_text(comparison.cells, result) + same_and_different + "\n";
                           },
                       .dry_run_end = same_and_different};
  return arguments.dry_run ? dry_run(study) : run_study(study);
}

void add_work_options(CLI::App& app, CompareArguments& arguments) {
  app.add_option("--model", arguments.model, "Networks, such as resnet50,vgg11 (default: resnet50)")->delimiter(',');
  app.add_option("--batch-size", arguments.batch_size, "Images per step and worker, such as 16,64 (default: 16)")
      ->delimiter(',');
  app.add_flag("--forward-only", arguments.forward_only, "Measure inference instead of training");
  app.add_flag("--both", arguments.both, "Measure both training and inference")->excludes("--forward-only");
  app.add_option("--threads", arguments.threads, "Threads of each worker (default: its share of the cores)");
  app.add_option("--precision", arguments.precision, "fp32, bf16; on a GPU also tf32, fp16 (default: fp32)");
  app.add_option("--device", arguments.device, "cpu, cuda (Trireme and PyTorch), or both (default: cpu)")
      ->delimiter(',');
  app.add_option("--workers", arguments.workers,
                 "Processes: `trireme launch` against DistributedDataParallel (default: 1)");
  app.add_option("--num-batches", arguments.num_batches, "Maximum number of timed steps per run (default: 100)");
  app.add_option("--num-warmup-batches", arguments.num_warmup_batches, "Warm-up steps before them (default: 3)");
  app.add_option("--max-seconds", arguments.max_seconds, "Maximum seconds for the steps of a run (default: 20)");
  app.add_option("--set", arguments.set, "Another option for all frameworks, as option=value")->allow_extra_args(false);
  app.add_option("--trireme-set", arguments.trireme_set,
                 "An option of bench or launch for Trireme only, as option=value")
      ->allow_extra_args(false);
  app.add_option(
      "--study", arguments.study,
      "Study to run instead of --model: cineca (AlexNet, OverFeat and VGG-11, inference and training), a plan\n"
      "from `trireme sweep --list`, or a file. The options above override its settings");
}

void add_peer_options(CLI::App& app, CompareArguments& arguments) {
  app.add_option(
         "--frameworks", arguments.frameworks,
         "Frameworks to compare with: pytorch, tensorflow, one of their configurations (such as pytorch-compile;\n"
         "an unknown name lists them), or all (default: pytorch,tensorflow)")
      ->delimiter(',');
  app.add_option("--python", arguments.python,
                 "Python interpreter that has them; repeat the option for several versions (default: the one from\n"
                 "tools/setup --peers if it exists, otherwise python3)")
      ->allow_extra_args(false);
  app.add_option("--peers-dir", arguments.peers_dir,
                 "Folder with their scripts (default: those that come with trireme)");
}

}  // namespace

Command add_compare(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "compare",
      "Run the same work under Trireme, PyTorch and TensorFlow in turn, and print the ratios of their speeds. Writes\n"
      "one record per run to a folder; run it again with the same folder to continue.");
  auto arguments = std::make_shared<CompareArguments>();
  add_work_options(*app, *arguments);
  add_peer_options(*app, *arguments);
  app->add_option("--rounds", arguments->rounds,
                  "Runs of each framework for each workload (default: 5, or the study's)");
  app->add_option("--out", arguments->out,
                  "Folder for the results (default: compare- followed by the networks or the study)");
  app->add_option("--budget", arguments->budget,
                  "Total time limit, such as 20m or 1h30m; runs that would not finish in time are not started");
  app->add_option("--run-limit", arguments->run_limit, "Time after which a run counts as failed")
      ->capture_default_str();
  app->add_flag("--retry-failed", arguments->retry_failed, "Repeat runs that failed before");
  app->add_flag("--dry-run", arguments->dry_run, "Show the commands and the differences without running anything");
  return {app, [arguments] { return run_compare(*arguments); }};
}

}  // namespace trireme::cli
