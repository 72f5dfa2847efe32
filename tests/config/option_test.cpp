// A toy table: one entry, and the option is in the help, on the command line, in completion, in the JSON, the banner,
// checks, plans and labels.
#include "trireme/config/option.hpp"

#include <gtest/gtest.h>

#include "cli/completion.hpp"
#include "cli/option_catalog.hpp"
#include "cli/table_options.hpp"
#include "trireme/base/error.hpp"
#include "trireme/config/tables.hpp"
#include "trireme/lab/study/study_plan.hpp"

namespace trireme::config {
namespace {

struct Nested {
  std::string colour = "red";
};
struct Toy {
  std::int64_t legs = 4;
  std::optional<double> weight = {};
  bool barks = false;
  std::string name = {};
  Nested nested = {};
  std::vector<std::string> tricks = {};
  std::int64_t walkers = 1;
};

const Table<Toy>& toy_table() {
  static const Table<Toy> table({
      option<Toy, &Toy::legs>({.name = "num-legs",
                               .group = "Body",
                               .help = "Legs",
                               .range = Range{0, 8},
                               .label = "{} leg|{} legs",
                               .environment = "TOY_LEGS"}),
      option<Toy, &Toy::weight>({.name = "weight", .group = "Body", .help = "In kg", .range = kAboveZero}),
      option<Toy, &Toy::barks>(
          {.name = "barks", .help = "Loud", .label = "quiet|loud", .spelling = "--barks,!--no-bark"}),
      option<Toy, &Toy::name>({.name = "name", .help = "Of the dog", .role = Role::run}),
      option<Toy, &Toy::nested, &Nested::colour>({.name = "colour", .help = "Of the fur", .names = {"red", "black"}}),
      entry<&Toy::tricks>("trick", "May be repeated"),
      entry<&Toy::walkers>("walkers", "People", {.alone = 1}),
  });
  return table;
}

std::string refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "accepted";
}

Toy parsed(const std::string& line) {
  Toy toy;
  CLI::App app;
  cli::add_table(app, toy_table(), toy);
  app.parse(line);
  return toy;
}

TEST(OptionTable, IsTheCommandLine) {
  const Toy toy = parsed("--num-legs 3 --weight 12.5 --barks --name Rex --trick sit --colour black --trick=--roll");
  EXPECT_EQ(toy.legs, 3);
  EXPECT_EQ(toy.weight, 12.5);
  EXPECT_TRUE(toy.barks);
  EXPECT_EQ(toy.name, "Rex");
  EXPECT_EQ(toy.nested.colour, "black");
  EXPECT_EQ(toy.tricks, (std::vector<std::string>{"sit", "--roll"}));
  EXPECT_FALSE(parsed("--barks --no-bark=true").barks);
  EXPECT_FALSE(parsed("--barks=false").barks);
  EXPECT_THROW(parsed("--num-legs many"), CLI::ParseError);
  EXPECT_THROW(parsed("--barks=sometimes"), CLI::ParseError);
  setenv("TOY_LEGS", "6", 1);
  EXPECT_EQ(parsed("").legs, 6);
  unsetenv("TOY_LEGS");
  EXPECT_EQ(parsed("").legs, 4);
}

TEST(OptionTable, IsTheHelp) {
  Toy toy;
  CLI::App app;
  cli::add_table(app, toy_table(), toy, {"name"});
  const CLI::Option* const legs = app.get_option("--num-legs");
  EXPECT_EQ(legs->get_description(), "Legs");
  EXPECT_EQ(legs->get_group(), "Body");
  EXPECT_EQ(legs->get_default_str(), "4");
  EXPECT_EQ(legs->get_envname(), "TOY_LEGS");
  EXPECT_EQ(app.get_option("--colour")->get_default_str(), "red");
  EXPECT_EQ(app.get_option("--weight")->get_default_str(), "") << "there is none";
  EXPECT_EQ(app.get_option_no_throw("--name"), nullptr) << "left out";
}

TEST(OptionTable, IsCompleted) {
  Toy toy;
  CLI::App app;
  CLI::App* const command = app.add_subcommand("walk");
  cli::add_table(*command, toy_table(), toy);
  EXPECT_EQ(cli::completions(app, {"walk", "--num"}), std::vector<std::string>{"--num-legs"});
  EXPECT_EQ(cli::completions(app, {"walk", "--colour", ""}), (std::vector<std::string>{"red", "black"}));
  EXPECT_EQ(cli::completions(app, {"walk", "--trick=s"}), std::vector<std::string>{}) << "any text";
}

TEST(OptionTable, IsTheJson) {
  Toy toy;
  EXPECT_EQ(toy_table().json(toy), Json::parse(R"({"num_legs": 4, "barks": false, "colour": "red", "walkers": 1})"))
      << "without what is not given, and what belongs to a run";
  toy.weight = 2;
  EXPECT_EQ(toy_table().json(toy)["weight"], 2.0);
}

TEST(OptionTable, SaysWhatWasChanged) {
  const auto changed = [](const Toy& toy) {
    std::vector<std::string> names;
    for (const Option* each : toy_table().changed(toy, "Body")) names.push_back(each->name);
    return names;
  };
  EXPECT_EQ(changed({.legs = 4, .barks = true}), std::vector<std::string>{}) << "the default; another group";
  EXPECT_EQ(changed({.legs = 3, .weight = 2}), (std::vector<std::string>{"num-legs", "weight"}));
}

TEST(OptionTable, ChecksValues) {
  const auto refusal = [](Toy toy) { return refusal_of([&] { toy_table().check(toy); }); };
  EXPECT_EQ(refusal({}), "accepted");
  EXPECT_EQ(refusal({.legs = 9}), "--num-legs 9: must be a whole number from 0 to 8");
  EXPECT_EQ(refusal({.weight = 0.0}), "--weight 0: must be a number, above 0");
  EXPECT_EQ(refusal({.weight = std::numeric_limits<double>::infinity()}), "--weight inf: must be a number, above 0");
  EXPECT_EQ(refusal({.nested = {"blue"}}), "--colour blue: must be one of red, black");
}

TEST(OptionTable, IsTheBanner) {
  Toy toy{.legs = 3, .barks = true, .tricks = {"sit", "roll"}};
  EXPECT_EQ(toy_table().words(toy, {"trick", "num-legs", "barks", "unknown"}),
            (std::vector<std::string>{"--num-legs", "3", "--barks", "--trick=sit", "--trick=roll"}))
      << "in the table's order";
  toy.barks = false;
  EXPECT_EQ(toy_table().words(toy, {"barks"}), (std::vector<std::string>{"--barks=false"}));
}

TEST(OptionTable, ChecksPlans) {
  const lab::OptionCatalog catalog({toy_table().find("num-legs"), toy_table().find("trick")}, {"name"});
  const auto refusal = [&](const Json& fixed) {
    return refusal_of([&] { lab::parse_plan({{"name", "x"}, {"fixed", fixed}}, "plan.json", catalog, {.cores = 1}); });
  };
  EXPECT_EQ(refusal({{"num-legs", 8}, {"trick", {"sit"}}}), "accepted");
  EXPECT_EQ(refusal({{"num-legs", 80}}), "plan.json: fixed: num-legs 80: must be a whole number from 0 to 8");
  EXPECT_EQ(refusal({{"num-legs", "x"}}), "plan.json: fixed: num-legs is a whole number; it cannot be \"x\"");
  EXPECT_EQ(refusal({{"trick", "sit"}}), "plan.json: fixed: trick is a list of texts; it cannot be \"sit\"");
  EXPECT_NE(refusal({{"name", "Rex"}}).find("'name' cannot be set in a study"), std::string::npos);
  EXPECT_NE(refusal({{"num-leg", 3}}).find("there is no option 'num-leg'; did you mean 'num-legs'?"),
            std::string::npos);
}

TEST(OptionTable, KnowsWhatNeedsALaunch) {
  EXPECT_TRUE(is_alone(*toy_table().find("walkers"), 1));
  EXPECT_FALSE(is_alone(*toy_table().find("walkers"), 2));
  EXPECT_FALSE(is_alone(*toy_table().find("num-legs"), 4));
  EXPECT_TRUE(is_alone(*toy_table().find("barks"), false));
}

TEST(OptionTable, LabelsValuesInStudies) {
  EXPECT_EQ(label_of(*toy_table().find("num-legs"), 1), "1 leg");
  EXPECT_EQ(label_of(*toy_table().find("num-legs"), 4), "4 legs");
  EXPECT_EQ(label_of(*toy_table().find("barks"), true), "loud");
  EXPECT_EQ(label_of(*toy_table().find("barks"), false), "quiet");
  EXPECT_EQ(label_of(*toy_table().find("colour"), "red"), "");
}

template <typename Struct>
void expect_complete(const Table<Struct>& table) {
  const Struct usual;
  EXPECT_EQ(refusal_of([&] { table.check(usual); }), "accepted") << "defaults are allowed";
  for (const Option& option : table) {
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_FALSE(option.group.empty()) << option.name;
    Struct copy;
    if (const Json value = option.get(&usual); !value.is_null()) option.set(&copy, value);
    EXPECT_EQ(option.get(&copy), option.get(&usual)) << option.name;
  }
}

TEST(OptionTables, AreComplete) {
  expect_complete(step_table());
  expect_complete(loop_table());
  expect_complete(timing_table());
  expect_complete(output_table());
  expect_complete(cluster_table());
  expect_complete(launch_table());
}

TEST(OptionTables, HaveAllOptionsOfTheirCommands) {
  CLI::App app;
  for (const cli::Command& command : {cli::add_bench(app), cli::add_train(app), cli::add_launch(app, {})}) {
    for (const CLI::Option* option : command.app->get_options()) {
      if (!cli::is_for_users(*option)) continue;
      const std::string& name = option->get_lnames().front();
      EXPECT_TRUE(find_option(name) != nullptr || name == "help" || name == "config")
          << command.app->get_name() << " --" << name;
    }
  }
}

TEST(OptionTables, SayWhatTellsConfigurationsApart) {
  EXPECT_EQ(identity(),
            (std::vector<std::string>{"model", "device", "precision", "forward-only", "data-name", "workers", "ps",
                                      "num-intra-threads", "batch-size", "variable-update"}));
  EXPECT_EQ(find_option("batch-split")->role, Role::chosen);
  EXPECT_EQ(find_option("max-seconds")->role, Role::measurement);
  EXPECT_EQ(find_option("epochs")->name, "epochs");
  EXPECT_EQ(find_option("hosts")->role, Role::setting);
  EXPECT_EQ(find_option("record")->role, Role::run);
  EXPECT_EQ(find_option("host"), nullptr);
}

}  // namespace
}  // namespace trireme::config
