// How comparisons are put together and what they say, from descriptions as bench/peers/describe.py gives them; the real
// frameworks are run by tests/peers/compare_test.py.
#include "trireme/lab/compare/comparison.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"
#include "trireme/lab/study/schedule.hpp"

namespace trireme::lab {
namespace {

Json configuration(const std::string& name, const std::string& mode, bool several_workers = false,
                   const std::string& device = "cpu") {
  return {{"name", name},
          {"what", "as it is"},
          {"script", several_workers    ? "several.py"
                     : device == "cuda" ? "gpu.py"
                                        : "one.py"},
          {"options", {"--layout", "nchw"}},
          {"environment", {{"OMP_PLACES", "cores"}}},
          {"modes", mode == "both" ? Json{"train", "forward"} : Json{mode}},
          {"precisions", {"fp32"}},
          {"several_workers", several_workers},
          {"device", device}};
}

Json description() {
  return {{"schema", kPeersSchema},
          {"options",
           {"model", "batch-size", "num-batches", "num-warmup-batches", "max-seconds", "num-intra-threads",
            "forward-only", "precision", "device", "workers", "no-dropout"}},
          {"unset", {"LD_PRELOAD"}},
          {"frameworks",
           {{{"name", "pytorch"},
             {"version", "2.15"},
             {"configurations",
              {configuration("pytorch", "both"), configuration("pytorch-ddp", "train", true),
               configuration("pytorch-jit", "forward"), configuration("pytorch-cuda", "both", false, "cuda")}}},
            {{"name", "tensorflow"}, {"missing", "No module named 'tensorflow'"}}}},
          {"networks",
           {{"vgg11", {{"same", "8 convolutions"}, {"pytorch", Json::array()}}},
            {"resnet50", {{"same", "53 convolutions"}, {"pytorch", {"a padding of its own"}}}}}},
          {"measurement", {{"same", {"one batch"}}, {"all", {"other weights"}}, {"pytorch", {"autocast"}}}},
          {"notes", Json::array()}};
}

std::vector<PeerCatalog> one_catalog() { return {parse_peers(description(), "python3", "/peers")}; }

StudyCell work(const std::string& model, Configuration further = {}) {
  StudyCell cell{.varied = {{"model", model}}, .configuration = {{"model", model}}, .slug = "model-" + model};
  cell.configuration.insert(cell.configuration.end(), further.begin(), further.end());
  return cell;
}

std::vector<std::string> labels(const Field& field) {
  std::vector<std::string> names;
  for (const Contestant& contestant : field.contestants) names.push_back(contestant.label);
  return names;
}

template <typename Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(RotatingSchedule, GroupsStayTogetherAndEveryRoundBeginsWithAnother) {
  const std::vector<ScheduledRun> expected{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {1, 2}, {2, 2}, {0, 2},
                                           {4, 2}, {3, 2}, {2, 3}, {0, 3}, {1, 3}, {3, 3}, {4, 3}};
  EXPECT_EQ(rotating_schedule({{0, 1, 2}, {3, 4}}, 3), expected);
}

TEST(Ratio, IsThatOfTheMediansWithTheRangeWithinRounds) {
  const auto ratio = ratio_of({10, 20, 30}, {5, 10, 10});
  ASSERT_TRUE(ratio);
  EXPECT_DOUBLE_EQ(ratio->of_medians, 2);
  EXPECT_DOUBLE_EQ(ratio->lowest, 2);
  EXPECT_DOUBLE_EQ(ratio->highest, 3);
}

TEST(Ratio, CountsRoundsThatHaveBoth) {
  const auto ratio = ratio_of({10, std::nullopt, 30}, {std::nullopt, 10, 10, 10});
  ASSERT_TRUE(ratio);
  EXPECT_DOUBLE_EQ(ratio->of_medians, 3);
  EXPECT_FALSE(ratio_of({10, std::nullopt}, {std::nullopt, 10}));
}

TEST(Contestants, AreFrameworksOrConfigurationsByName) {
  const auto catalogs = one_catalog();
  EXPECT_EQ(labels(choose_contestants(catalogs, {"pytorch"})), std::vector<std::string>{"pytorch"});
  EXPECT_EQ(labels(choose_contestants(catalogs, {"pytorch-jit", "pytorch"})),
            (std::vector<std::string>{"pytorch-jit", "pytorch"}));
  EXPECT_EQ(labels(choose_contestants(catalogs, {"all"})),
            (std::vector<std::string>{"pytorch", "pytorch-ddp", "pytorch-jit", "pytorch-cuda"}));
}

TEST(Contestants, WhatIsMissingIsSaidWithItsReasonAndRemedy) {
  const auto catalogs = one_catalog();
  for (const char* wanted : {"tensorflow", "tensorflow-xla"}) {
    const Field field = choose_contestants(catalogs, {"pytorch", wanted});
    EXPECT_EQ(field.contestants.size(), 1u);
    ASSERT_EQ(field.missing.size(), 1u);
    EXPECT_TRUE(has(
        field.missing[0],
        "tensorflow: python3 does not have it (No module named 'tensorflow'); install it with tools/setup --peers"));
  }
  const std::string message = message_of([&] { choose_contestants(catalogs, {"theano"}); });
  EXPECT_TRUE(
      has(message,
          "unknown framework 'theano'; choose from pytorch, pytorch-ddp, pytorch-jit, pytorch-cuda, tensorflow, all"))
      << message;
}

TEST(Contestants, VersionsTellInterpretersApart) {
  Json other = description();
  other["frameworks"][0]["version"] = "1.13";
  const std::vector<PeerCatalog> two{parse_peers(description(), "new", "/peers"), parse_peers(other, "old", "/peers")};
  EXPECT_EQ(labels(choose_contestants(two, {"pytorch"})), (std::vector<std::string>{"pytorch 2.15", "pytorch 1.13"}));
  const std::vector<PeerCatalog> same{two[0], two[0]};
  EXPECT_TRUE(has(message_of([&] { choose_contestants(same, {"pytorch"}); }), "pytorch 2.15 is given twice"));
}

TEST(Comparison, EveryWorkIsRunByAllThatCanDoIt) {
  const auto catalogs = one_catalog();
  const Field field = choose_contestants(catalogs, {"pytorch", "pytorch-jit"});
  const FrameworkComparison comparison =
      make_comparison({work("vgg11"), work("vgg11", {{"forward-only", true}})}, field.contestants, {}, 4);
  EXPECT_EQ(comparison.groups, (std::vector<std::vector<std::size_t>>{{0, 1}, {2, 3, 4}}));
  ASSERT_EQ(comparison.left_out.size(), 1u);
  EXPECT_TRUE(has(comparison.left_out[0], "pytorch-jit cannot do model=vgg11"));
  EXPECT_EQ(comparison.cells[0].framework, "trireme");
  EXPECT_TRUE(comparison.cells[0].peer_command.empty());
  EXPECT_EQ(comparison.cells[1].slug, "model-vgg11_framework-pytorch");
  EXPECT_EQ(comparison.cells[1].varied, (Json{{"model", "vgg11"}}));
}

TEST(Comparison, PeersGetTheOptionsOfTrireme) {
  const auto catalogs = one_catalog();
  const Field field = choose_contestants(catalogs, {"pytorch"});
  const FrameworkComparison comparison = make_comparison(
      {work("vgg11", {{"no-dropout", true}, {"forward-only", false}})}, field.contestants, {{"autotune", "off"}}, 4);
  const std::vector<std::string> expected{"/usr/bin/env",
                                          "-u",
                                          "LD_PRELOAD",
                                          "OMP_PLACES=cores",
                                          "python3",
                                          "-B",
                                          "/peers/one.py",
                                          "--layout",
                                          "nchw",
                                          "--model",
                                          "vgg11",
                                          "--no-dropout",
                                          "--batch-size",
                                          "16",
                                          "--num-batches",
                                          "100",
                                          "--num-warmup-batches",
                                          "3",
                                          "--max-seconds",
                                          "20",
                                          "--precision",
                                          "fp32",
                                          "--num-intra-threads",
                                          "4"};
  EXPECT_EQ(comparison.cells[1].peer_command, expected);
  EXPECT_EQ(*find(comparison.cells[0].configuration, "num-intra-threads"), 4);
  EXPECT_EQ(*find(comparison.cells[0].configuration, "autotune"), "off");
}

TEST(Comparison, SeveralWorkersShareTheCoresAndAreRunByWhoeverCan) {
  const auto catalogs = one_catalog();
  const Field field = choose_contestants(catalogs, {"pytorch"});
  const FrameworkComparison comparison = make_comparison({work("vgg11", {{"workers", 2}})}, field.contestants, {}, 4);
  const std::vector<std::string>& command = comparison.cells[1].peer_command;
  EXPECT_NE(std::find(command.begin(), command.end(), "/peers/several.py"), command.end());
  EXPECT_EQ(*find(comparison.cells[1].configuration, "num-intra-threads"), 2);
  EXPECT_TRUE(
      has(message_of([&] {
            make_comparison({work("vgg11", {{"workers", 2}, {"forward-only", true}})}, field.contestants, {}, 4);
          }),
          "no other framework can do this: pytorch cannot do"));
}

TEST(Comparison, OnAGpuTheConfigurationForGpusRuns) {
  const auto catalogs = one_catalog();
  const Field field = choose_contestants(catalogs, {"pytorch", "pytorch-jit"});
  const FrameworkComparison comparison =
      make_comparison({work("vgg11"), work("vgg11", {{"device", "cuda"}})}, field.contestants, {}, 4);
  EXPECT_EQ(comparison.groups, (std::vector<std::vector<std::size_t>>{{0, 1}, {2, 3}}));
  const std::vector<std::string>& command = comparison.cells[3].peer_command;
  EXPECT_NE(std::find(command.begin(), command.end(), "/peers/gpu.py"), command.end());
  const auto device = std::find(command.begin(), command.end(), "--device");
  ASSERT_NE(device, command.end());
  EXPECT_EQ(*std::next(device), "cuda");
}

TEST(Comparison, SaysHowEachRuns) {
  Json json = description();
  json["frameworks"][0]["configurations"][3]["what"] = "on a GPU";
  const std::vector<PeerCatalog> catalogs{parse_peers(json, "python3", "/peers")};
  const Field field = choose_contestants(catalogs, {"pytorch", "tensorflow"});
  const auto comparison = make_comparison({work("vgg11", {{"device", "cuda"}})}, field.contestants, {}, 4);
  const std::string text = field_text(field, comparison, {"a note"});
  EXPECT_TRUE(has(text, "pytorch: version 2.15 of python3; on a GPU\nmissing: tensorflow")) << text;
  EXPECT_TRUE(has(text, "note: a note\n")) << text;
}

TEST(Comparison, WhatPeersDoNotHaveIsRefused) {
  const auto catalogs = one_catalog();
  const Field field = choose_contestants(catalogs, {"pytorch"});
  EXPECT_TRUE(has(message_of([&] { make_comparison({work("alexnet")}, field.contestants, {}, 4); }),
                  "have no 'alexnet'; they have vgg11, resnet50"));
  EXPECT_TRUE(has(message_of([&] {
                    make_comparison({work("vgg11", {{"batch-split", 2}})}, field.contestants, {}, 4);
                  }),
                  "batch-split: only Trireme has this option"));
}

TEST(Peers, ADescriptionThatIsNotWholeIsRefused) {
  Json json = description();
  json["frameworks"][0]["configurations"][0].erase("script");
  EXPECT_TRUE(has(message_of([&] { parse_peers(json, "python3", "/peers"); }), "/peers/describe.py: its description"));
}

TEST(Peers, AnInterpreterThatIsNoneIsRefused) {
  EXPECT_TRUE(has(message_of([] { ask_peers("/nowhere/python", "/peers"); }), "there is no program '/nowhere/python'"));
  EXPECT_TRUE(has(message_of([] { ask_peers("/bin/false", "/peers"); }), "'/bin/false' could not list its frameworks"));
  EXPECT_TRUE(has(message_of([] { ask_peers("/bin/echo", "/peers"); }), "gave no description"));
}

TEST(Peers, ScriptsAreFoundBesideTheProgram) {
  const testkit::TemporaryFolder folder;
  const std::filesystem::path root = folder.path();
  std::filesystem::create_directories(root / "share/trireme/peers");
  EXPECT_TRUE(has(message_of([&] { find_peers_folder("", root / "bin/trireme"); }), "--peers-dir"));
  write_json(Json(), root / "share/trireme/peers/describe.py");
  const auto expected = std::filesystem::canonical(root / "share/trireme/peers");
  EXPECT_EQ(find_peers_folder("", root / "bin/trireme"), expected);  // installed
  EXPECT_EQ(find_peers_folder("", root / "trireme"), expected);      // built
  EXPECT_EQ(find_peers_folder(expected.string(), "/nowhere/trireme"), expected);
  EXPECT_TRUE(has(message_of([&] { find_peers_folder(root.string(), root / "trireme"); }), "has no describe.py"));
}

class ComparisonText : public testing::Test {
 protected:
  void record(const std::string& framework, int round, double speed) const {
    write({"model-vgg11_framework-" + framework, round},
          {{"build", {{"warnings", {"beware of " + framework}}}},
           {"results", {{"images_per_second", speed}, {"peak_rss_bytes", 2e9}}}});
  }
  void write(const RunName& run, const Json& record) const { write_json(record, run_file(runs_.path(), run)); }

  testkit::TemporaryFolder folder_;
  StudyFolder runs_{folder_ / "study"};
  std::vector<PeerCatalog> catalogs_ = one_catalog();
  Field field_ = choose_contestants(catalogs_, {"pytorch"});
  FrameworkComparison comparison_ = make_comparison({work("vgg11")}, field_.contestants, {}, 2);
};

TEST_F(ComparisonText, TableHasRatiosWithTheirSpread) {
  for (int round = 1; round <= 3; ++round) record("trireme", round, 10.0 * round);
  for (int round = 1; round <= 2; ++round) record("pytorch", round, 10);
  write({"model-vgg11_framework-pytorch", 3}, {{"error", "no memory"}, {"results", nullptr}});
  const std::string table = ratio_table(comparison_, runs_.path(), 3);
  EXPECT_TRUE(has(table, "vgg11  trireme         20.00  100.0 %     2.00")) << table;
  EXPECT_TRUE(has(table, "vgg11  pytorch         10.00    0.0 %     2.00         1.50x  1.00x to 2.00x     2"))
      << table;
  EXPECT_TRUE(has(table, "warning: beware of pytorch"));
}

TEST_F(ComparisonText, MemoryIsThatOfTheGpuInRunsOnOne) {
  write({"model-vgg11_framework-trireme", 1}, {{"machine", {{"gpu", {{"training_bytes", 3e9}}}}},
                                               {"results", {{"images_per_second", 10}, {"peak_rss_bytes", 2e9}}}});
  const std::string table = ratio_table(comparison_, runs_.path(), 1);
  EXPECT_TRUE(has(table, "vgg11  trireme         10.00       -     3.00")) << table;
}

TEST_F(ComparisonText, OneRoundHasNoRange) {
  record("trireme", 1, 12);
  record("pytorch", 1, 10);
  const std::string table = ratio_table(comparison_, runs_.path(), 1);
  EXPECT_TRUE(has(table, "1.20x               -     1")) << table;
}

TEST_F(ComparisonText, TableOfNothingMeasuredHasNoFigures) {
  const std::string table = ratio_table(comparison_, runs_.path(), 3);
  EXPECT_TRUE(has(table, "vgg11  pytorch             -")) << table;
  EXPECT_FALSE(has(table, "nan"));
}

TEST_F(ComparisonText, DifferencesAreThoseOfTheNetworksAndFrameworksAtHand) {
  const auto both = make_comparison({work("vgg11", {{"no-dropout", true}}), work("resnet50"), work("resnet50")},
                                    field_.contestants, {}, 2);
  const std::vector<std::string> expected{"vgg11, the same: 8 convolutions; changed on all sides: no-dropout=true",
                                          "vgg11: no known difference between the networks",
                                          "resnet50, the same: 53 convolutions",
                                          "resnet50, pytorch: a padding of its own",
                                          "measurement, the same: one batch",
                                          "measurement: other weights",
                                          "measurement, pytorch: autocast"};
  EXPECT_EQ(difference_lines(both, field_.contestants), expected);
}

}  // namespace
}  // namespace trireme::lab
