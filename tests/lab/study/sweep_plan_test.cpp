// Plans: what is taken, what is refused and in which words, and the cells that come of them.
#include <gtest/gtest.h>

#include <set>

#include "trireme/base/error.hpp"
#include "trireme/config/tables.hpp"
#include "trireme/lab/study/duration.hpp"
#include "trireme/lab/study/ready_plans.hpp"
#include "trireme/lab/study/study_cells.hpp"
#include "trireme/lab/study/study_folder.hpp"

namespace trireme::lab {
namespace {

std::vector<const config::Option*> declared(const std::vector<std::string>& names) {
  std::vector<const config::Option*> options;
  for (const std::string& name : names) options.push_back(config::find_option(name));
  return options;
}

const OptionCatalog& options() {
  static const OptionCatalog catalog(declared({"model", "batch-size", "momentum", "forward-only", "num-intra-threads",
                                               "workers", "ps", "threads-per-worker", "hosts"}));
  return catalog;
}

StudyPlan parse(const std::string& text, int cores = 4) {
  return parse_plan(Json::parse(text), "p.json", options(), {.cores = cores, .hardware_threads = 2 * cores});
}
std::vector<StudyCell> cells(const std::string& text, int cores = 4) { return cells_of(parse(text, cores), options()); }

std::vector<std::string> texts(const std::vector<StudyCell>& cells) {
  std::vector<std::string> result;
  for (const StudyCell& cell : cells) result.push_back(cell_text(cell));
  return result;
}

template <typename Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}
std::string plan_error(const std::string& text) {
  return error_of([&] { cells(text); });
}

TEST(SweepPlan, CellsAreTheProductAndTheFirstAxisVariesSlowest) {
  EXPECT_EQ(texts(cells(R"({"name": "x", "vary": {"model": ["a", "b"], "batch-size": [1, 2]}})")),
            (std::vector<std::string>{"model=a batch-size=1", "model=a batch-size=2", "model=b batch-size=1",
                                      "model=b batch-size=2"}));
}

TEST(SweepPlan, WithoutAxesThereIsOneCell) {
  const auto only = cells(R"({"name": "x", "fixed": {"model": "a"}})");
  ASSERT_EQ(only.size(), 1u);
  EXPECT_EQ(only[0].slug, "cell");
  EXPECT_EQ(only[0].varied, Json::object());
}

TEST(SweepPlan, ConstraintsLeaveCellsOut) {
  EXPECT_EQ(
      texts(cells(R"({"name": "x", "vary": {"workers": [1, 2], "ps": [1, 2]}, "constraints": ["ps <= workers"]})")),
      (std::vector<std::string>{"workers=1 ps=1", "workers=2 ps=1", "workers=2 ps=2"}));
  EXPECT_EQ(cells(R"({"name": "x", "vary": {"num-intra-threads": [1, 2, 4, 8]},
                      "constraints": ["workers * num-intra-threads <= cores", "ps == 0", "hosts == 1"]})")
                .size(),
            3u)
      << "workers and ps have the values of a run without a launch";
  EXPECT_NE(plan_error(R"({"name": "x", "vary": {"ps": [5]}, "constraints": ["ps <= workers"]})")
                .find("leave none of its 1 combinations"),
            std::string::npos);
}

TEST(SweepPlan, RangesArePowersOfTwoAndTheBounds) {
  const auto values = [](const std::string& range, int cores) {
    std::vector<int> result;
    const auto plan =
        parse(R"({"name": "x", "fixed": {"hosts": "a,b,c"}, "vary": {"workers": ")" + range + "\"}}", cores);
    for (const Choice& choice : plan.axes[0].choices) result.push_back(choice.value.get<int>());
    return result;
  };
  EXPECT_EQ(values("1..cores", 1), (std::vector{1}));
  EXPECT_EQ(values("1..cores", 6), (std::vector{1, 2, 4, 6}));
  EXPECT_EQ(values("3..2 * cores", 8), (std::vector{3, 4, 8, 16}));
  EXPECT_EQ(values("1..hardware-threads", 2), (std::vector{1, 2, 4}));
  EXPECT_EQ(values("1..hosts", 8), (std::vector{1, 2, 3}));
  EXPECT_NE(plan_error(R"({"name": "x", "vary": {"workers": "2..1"}})").find("is from 2 to 1"), std::string::npos);
  EXPECT_NE(plan_error(R"({"name": "x", "vary": {"workers": "1..ranks"}})").find("there is no 'ranks' here"),
            std::string::npos);
  EXPECT_NE(plan_error(R"({"name": "x", "vary": {"workers": "many"}})").find("must be a list of values"),
            std::string::npos);
}

TEST(SweepPlan, LabelledChoicesSetSeveralOptions) {
  const auto both = cells(R"({"name": "x", "vary": {"mode": [{"label": "SP", "workers": 1, "num-intra-threads": 4},
                                                             {"label": "MP", "workers": 4, "num-intra-threads": 1}]}})");
  EXPECT_EQ(texts(both), (std::vector<std::string>{"mode=SP", "mode=MP"}));
  EXPECT_EQ(both[1].varied, Json({{"mode", "MP"}}));
  EXPECT_EQ(to_text(both[1].configuration), "workers=4 num-intra-threads=1");
  EXPECT_EQ(both[1].slug, "mode-MP");
}

TEST(SweepPlan, FormulasFollowFromOtherOptionsAndLabels) {
  const auto found = cells(R"({"name": "x", "fixed": {"batch-size": "=total / workers"},
      "vary": {"total": [{"label": 16}, {"label": 6}], "mode": [{"label": "SP"}, {"label": "MP", "workers": "=cores"}]},
      "constraints": ["total % workers == 0"]})");
  ASSERT_EQ(found.size(), 3u) << "6 images do not divide over 4 workers";
  EXPECT_EQ(*find(found[0].configuration, "batch-size"), 16);
  EXPECT_EQ(*find(found[1].configuration, "batch-size"), 4);
  EXPECT_EQ(*find(found[1].configuration, "workers"), 4);
  EXPECT_EQ(*find(found[2].configuration, "batch-size"), 6);
  EXPECT_EQ(plan_error(R"({"name": "x", "fixed": {"batch-size": "=7 / cores"}})"),
            "p.json: the only cell: '=7 / cores': batch-size is a whole number; it cannot be 1.75");
  EXPECT_EQ(
      plan_error(R"({"name": "x", "fixed": {"batch-size": "=7 / (workers - 2) + 8"}, "vary": {"workers": [1, 2]}})"),
      "p.json: the cell 'workers=2': batch-size: '7 / (workers - 2) + 8': 7 / 0: division by zero");
  EXPECT_NE(
      plan_error(R"({"name": "x", "fixed": {"batch-size": "=batch-size + 1"}})").find("batch-size depends on itself"),
      std::string::npos);
  EXPECT_EQ(texts(cells(R"({"name": "x", "vary": {"workers": ["=cores / 2", 4]}})")),
            (std::vector<std::string>{"workers=2", "workers=4"}));
}

TEST(SweepPlan, UnknownNamesInConstraintsListWhatThereIs) {
  const std::string error =
      plan_error(R"({"name": "x", "vary": {"batch-size": [1]}, "constraints": ["threads <= cores"]})");
  EXPECT_EQ(error,
            "p.json: constraints[0]: 'threads <= cores': there is no 'threads' in the cell 'batch-size=1', which has "
            "batch-size, cores, hardware-threads, hosts, ps, workers; other options can be set in fixed");
}

TEST(SweepPlan, RefusesWhatItDoesNotKnow) {
  const auto has = [](const std::string& plan, const std::string& part) {
    const std::string error = plan_error(plan);
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_EQ(error.find("p.json: "), 0u) << error;
  };
  has(R"([])", "a plan is a JSON object, {...}, not array");
  has(R"({"name": "x", "varies": {}})", "unknown key 'varies'; the keys of a plan are schema, name,");
  has(R"({})", "name: '': must be one word");
  has(R"({"name": "a/b"})", "name: 'a/b': must be one word");
  has(R"({"name": "x", "schema": "trireme.run/1"})", "schema: 'trireme.run/1' is not a plan");
  has(R"({"name": "x", "command": "models"})", "command: 'models' cannot be swept; it must be bench");
  has(R"({"name": "x", "figure": "pie"})", "figure: 'pie': must be one of scaling, heatmap");
  has(R"({"name": "x", "title": 3})", "title: must be text, not 3");
  has(R"({"name": "x", "repeats": 0})", "repeats: must be a whole number from 1 to 1000, not 0");
  has(R"({"name": "x", "repeats": 2.5})", "repeats: must be a whole number");
  has(R"({"name": "x", "budget": "20"})", "budget: '20': must be a duration with its unit");
  has(R"({"name": "x", "fixed": []})", "fixed: must be an object of options");
  has(R"({"name": "x", "fixed": {"batch-sise": 1}})",
      "fixed: there is no option 'batch-sise'; did you mean 'batch-size'?");
  has(R"({"name": "x", "fixed": {"batch-size": "16"}})", "fixed: batch-size is a whole number; it cannot be \"16\"");
  has(R"({"name": "x", "fixed": {"batch-size": 1.5}})", "batch-size is a whole number; it cannot be 1.5");
  has(R"({"name": "x", "fixed": {"forward-only": 1}})", "forward-only is true or false; it cannot be 1");
  has(R"({"name": "x", "fixed": {"model": null}})", "the plan does not set model; give it with --set model=VALUE");
  has(R"({"name": "x", "vary": []})", "vary: must be an object of lists");
  has(R"({"name": "x", "vary": {"batch-size": []}})", "vary.batch-size: must be a list of at least one value");
  has(R"({"name": "x", "vary": {"batch-size": 16}})", "vary.batch-size: must be a list of at least one value");
  has(R"({"name": "x", "vary": {"batch-size": [1, [2]]}})", "vary.batch-size[1]: must be a value");
  has(R"({"name": "x", "vary": {"batch-size": [1, 2, 1]}})", "vary.batch-size: 1 is listed twice");
  has(R"({"name": "x", "vary": {"mode": [1]}})", "vary.mode[0]: there is no option 'mode'");
  has(R"({"name": "x", "vary": {"mode": [{}]}})", "vary.mode[0]: sets nothing and has no label");
  has(R"({"name": "x", "vary": {"mode": [{"label": true}]}})", "vary.mode[0]: label: must be text or a number");
  has(R"({"name": "x", "fixed": {"workers": 1}, "vary": {"workers": [1]}})",
      "workers is set by fixed and by vary.workers");
  has(R"({"name": "x", "constraints": "a"})", "constraints: must be a list");
  has(R"({"name": "x", "constraints": [1]})", "constraints[0]: must be text");
  has(R"({"name": "x", "constraints": ["1 <"]})",
      "constraints[0]: '1 <': a number, a name or a quoted text is missing");
  has(R"({"name": "x", "constraints": ["1 + 1"]})", "constraints[0]: '1 + 1': is 2, not a condition");
}

TEST(SweepPlan, SetOverridesFixedAndRestrictsVaried) {
  const auto set = [](const std::string& assignment) {
    Json plan = Json::parse(R"({"name": "x", "fixed": {"model": "a"},
        "vary": {"batch-size": [1, 2], "mode": [{"label": "SP", "workers": 1}, {"label": "MP", "workers": 2}]}})");
    set_option(plan, assignment, options());
    return plan;
  };
  EXPECT_EQ(set("model=b")["fixed"]["model"], "b");
  EXPECT_EQ(set("momentum=0.5")["fixed"]["momentum"], 0.5);
  EXPECT_EQ(set("forward_only=true")["fixed"]["forward-only"], true);
  EXPECT_EQ(set("batch-size=2")["vary"]["batch-size"], Json::array({2}));
  EXPECT_EQ(set("batch-size=4,8")["vary"]["batch-size"], Json::array({4, 8}));
  EXPECT_EQ(set("mode=MP")["vary"]["mode"].size(), 1u);
  EXPECT_EQ(error_of([&] { set("mode=XP"); }), "--set mode: 'XP' is not one of its choices, which are SP, MP");
  EXPECT_EQ(error_of([&] { set("batch-size=two"); }), "--set: batch-size is a whole number; it cannot be \"two\"");
  EXPECT_NE(error_of([&] { set("colour=red"); }).find("there is no option 'colour'"), std::string::npos);
  EXPECT_NE(error_of([&] { set("model"); }).find("must be option=value"), std::string::npos);
}

TEST(SweepPlan, TheResolvedPlanGivesTheSameCellsElsewhere) {
  const StudyPlan plan = parse(R"({"name": "x", "figure": "bars", "fixed": {"batch-size": "=8 / workers"},
      "vary": {"workers": "1..cores", "mode": [{"label": "m", "momentum": 0.5}]}, "constraints": ["workers <= cores"],
      "repeats": 2, "budget": "1h30m"})",
                               4);
  const Json json = to_json(plan);
  const StudyPlan again = parse_plan(json, "plan.json", options(), {64, 64});
  EXPECT_EQ(texts(cells_of(again, options())), texts(cells_of(plan, options())));
  EXPECT_EQ(to_json(again), json);
}

TEST(SweepPlan, WhatFormulasMakeTheSameIsOneCell) {
  EXPECT_EQ(texts(cells(R"({"name": "x", "vary": {"batch-size": [8, "=4*2", 4, "=16/cores"]}})")),
            (std::vector<std::string>{"batch-size=8", "batch-size=4"}));
  EXPECT_EQ(
      plan_error(R"({"name": "x", "vary": {"mode": [{"label": "1", "workers": 1}, {"label": 1, "workers": 2}]}})"),
      "p.json: two cells would both be called mode-1, one with workers=1, the other with workers=2; give them "
      "different labels");
}

TEST(SweepPlan, SlugsAreFileNamesAndDiffer) {
  std::set<std::string> slugs;
  for (const StudyCell& cell : cells(R"({"name": "x", "vary": {"model": ["a/b", "a b", "a-b", ")" +
                                     std::string(300, 'x') + R"("], "momentum": [0.5, 0.9]}})")) {
    EXPECT_EQ(cell.slug.find_first_of("/ "), std::string::npos);
    EXPECT_LT(cell.slug.size(), 200u);
    slugs.insert(cell.slug);
  }
  EXPECT_EQ(slugs.size(), 8u);
}

TEST(SweepPlan, CommandsAreLaunchedWhereThereIsMoreThanOneWorker) {
  const auto words = [](const std::string& fixed) {
    std::string line;
    for (const std::string& word : command_words(cells(R"({"name": "x", "fixed": )" + fixed + "}")[0].configuration)) {
      line += (line.empty() ? "" : " ") + word;
    }
    return line;
  };
  EXPECT_EQ(words(R"({"model": "a", "forward-only": true, "momentum": 0.5})"),
            "bench --model a --forward-only --momentum 0.5");
  EXPECT_EQ(words(R"({"forward-only": false, "workers": 1, "ps": 0})"), "bench --forward-only=false");
  EXPECT_EQ(words(R"({"model": "a", "workers": 2})"), "launch --workers 2 -- bench --model a");
  EXPECT_EQ(words(R"({"ps": 1, "workers": 1})"), "launch --ps 1 --workers 1 -- bench");
  EXPECT_EQ(words(R"({"threads-per-worker": 1, "workers": 1})"), "launch --threads-per-worker 1 --workers 1 -- bench");
}

TEST(SweepPlan, AChangedPlanIsNamed) {
  const Json kept =
      to_json(parse(R"({"name": "x", "fixed": {"batch-size": 1}, "vary": {"workers": [1, 2]}, "repeats": 2})"));
  const auto check = [&](const std::string& text, int cores = 4) {
    check_same_study(kept, to_json(parse(text, cores)), "out");
  };
  EXPECT_NO_THROW(check(R"({"name": "x", "title": "new", "budget": "1m", "fixed": {"batch-size": 1},
                           "vary": {"workers": [1, 2]}, "repeats": 3})"));
  const std::string changed = error_of([&] {
    check(R"({"name": "x", "fixed": {"model": "a"}, "vary": {"workers": [1, 4]}, "constraints": ["ps == 0"],
              "repeats": 1})",
          8);
  });
  for (const char* part : {"vary.workers is [1,4] and was [1,2]", "fixed.model is \"a\" and was not set before",
                           "fixed.batch-size is not set and was 1", "constraints is [\"ps == 0\"] and was []",
                           "cores is 8 and was 4", "repeats is 1 and was 2"}) {
    EXPECT_NE(changed.find(part), std::string::npos) << changed;
  }
}

TEST(SweepPlan, AnotherOrderOfAxesIsAnotherPlan) {
  const auto plan = [](const std::string& vary) { return to_json(parse(R"({"name": "x", "vary": )" + vary + "}")); };
  const Json kept = plan(R"({"workers": [1, 2], "ps": [0]})");
  EXPECT_NE(error_of([&] {
              check_same_study(kept, plan(R"({"ps": [0], "workers": [1, 2]})"), "out");
            }).find("the order in vary is ps, workers and was workers, ps"),
            std::string::npos);
}

TEST(Options, AreHintedAtWhenNearlyRight) {
  const OptionCatalog catalog(declared({"seed", "model"}), {"record"});
  const auto error = [&](const std::string& name) { return error_of([&] { catalog.get(name, "here"); }); };
  EXPECT_NE(error("sede").find("there is no option 'sede'; did you mean 'seed'? "), std::string::npos) << error("sede");
  EXPECT_NE(error("nosuch").find("there is no option 'nosuch'. Options are "), std::string::npos) << error("nosuch");
  EXPECT_NE(error("md").find("'md'. Options are "), std::string::npos) << error("md");
  EXPECT_EQ(error("record"),
            "here: 'record' cannot be set in a study, which decides itself what to run and where results go");
}

TEST(Duration, IsReadAndWrittenWithUnits) {
  EXPECT_EQ(parse_duration("45s", "here"), 45);
  EXPECT_EQ(parse_duration("1h30m", "here"), 5400);
  EXPECT_EQ(parse_duration("1.5m", "here"), 90);
  for (const char* wrong : {"", "5", "m", "0s", "-1m", "5x", "1e3s", "inf"}) {
    EXPECT_THROW(parse_duration(wrong, "here"), Error) << wrong;
  }
  EXPECT_EQ(duration_text(4.25), "4.2s");
  EXPECT_EQ(duration_text(59.99), "1m");
  EXPECT_EQ(duration_text(5400), "1h30m");
  EXPECT_EQ(duration_text(3661), "1h1m1s");
  EXPECT_EQ(time_left_text(199.6), "3m20s left");
  EXPECT_EQ(time_left_text(-2), "1s left") << "an estimate that was too low";
}

TEST(ReadyPlans, AreThere) {
  std::set<std::string_view> names;
  for (const ReadyPlan& plan : ready_plans()) {
    const Json json = Json::parse(plan.text);
    EXPECT_EQ(json["name"], plan.name);
    for (const char* key : {"title", "question", "source", "figure"})
      EXPECT_TRUE(json.contains(key)) << plan.name << key;
    names.insert(plan.name);
  }
  EXPECT_EQ(names.size(), 19u);
}

}  // namespace
}  // namespace trireme::lab
