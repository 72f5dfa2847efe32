// A toy table: one entry, and the option is in the help, on the command line, in the JSON, in checks and in labels.
#include "trireme/config/option.hpp"

#include <gtest/gtest.h>

#include "cli/completion.hpp"
#include "cli/table_options.hpp"
#include "trireme/base/error.hpp"
#include "trireme/config/tables.hpp"
#include "trireme/lab/study/configuration.hpp"

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
      option<Toy, &Toy::name>({.name = "name", .help = "Of the dog", .role = Role::output}),
      option<Toy, &Toy::nested, &Nested::colour>({.name = "colour", .help = "Of the fur", .names = {"red", "black"}}),
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
  const Toy toy = parsed("--num-legs 3 --weight 12.5 --barks --name Rex --colour black");
  EXPECT_EQ(toy.legs, 3);
  EXPECT_EQ(toy.weight, 12.5);
  EXPECT_TRUE(toy.barks);
  EXPECT_EQ(toy.name, "Rex");
  EXPECT_EQ(toy.nested.colour, "black");
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
}

TEST(OptionTable, IsTheJson) {
  Toy toy;
  EXPECT_EQ(toy_table().json(toy), Json::parse(R"({"num_legs": 4, "barks": false, "colour": "red"})"))
      << "without what is not given, and outputs";
  toy.weight = 2;
  EXPECT_EQ(toy_table().json(toy)["weight"], 2.0);
}

TEST(OptionTable, ChecksValues) {
  const auto refusal = [](Toy toy) { return refusal_of([&] { toy_table().check(toy); }); };
  EXPECT_EQ(refusal({}), "accepted");
  EXPECT_EQ(refusal({.legs = 9}), "--num-legs 9: must be a whole number from 0 to 8");
  EXPECT_EQ(refusal({.weight = 0.0}), "--weight 0: must be a number, above 0");
  EXPECT_EQ(refusal({.weight = std::numeric_limits<double>::infinity()}), "--weight inf: must be a number, above 0");
  EXPECT_EQ(refusal({.nested = {"blue"}}), "--colour blue: must be one of red, black");
}

TEST(OptionTable, ChecksPlans) {
  const lab::OptionInfo legs{.name = "num-legs", .kind = Kind::integer, .declared = toy_table().find("num-legs")};
  const auto refusal = [&](const Json& value) {
    return refusal_of([&] { lab::check_value(legs, value, "plan.json: fixed"); });
  };
  EXPECT_EQ(refusal(8), "accepted");
  EXPECT_EQ(refusal(80), "plan.json: fixed: num-legs 80: must be a whole number from 0 to 8");
  EXPECT_EQ(refusal("x"), "plan.json: fixed: num-legs is a whole number; it cannot be \"x\"");
  EXPECT_EQ(words_of("num-legs", 8), (std::vector<std::string>{"--num-legs", "8"}));
  EXPECT_EQ(words_of("barks", true), (std::vector<std::string>{"--barks"}));
  EXPECT_EQ(words_of("barks", false), (std::vector<std::string>{"--barks=false"}));
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
}

TEST(OptionTables, SayWhatTellsConfigurationsApart) {
  EXPECT_EQ(identity(),
            (std::vector<std::string>{"model", "device", "precision", "forward-only", "data-name", "workers", "ps",
                                      "num-intra-threads", "batch-size", "variable-update"}));
  EXPECT_EQ(find_option("batch-split")->role, Role::chosen);
  EXPECT_EQ(find_option("max-seconds")->role, Role::measurement);
  EXPECT_EQ(find_option("epochs")->name, "epochs");
  EXPECT_EQ(find_option("hosts"), nullptr);
}

}  // namespace
}  // namespace trireme::config
