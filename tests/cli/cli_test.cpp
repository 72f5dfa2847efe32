// The program as a user meets it: what it says and how it exits.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/refusal.hpp"
#include "trireme/backend/registry.hpp"
#include "trireme/models/model.hpp"

namespace trireme::testkit {
namespace {

using nlohmann::json;

json run_json(const std::vector<std::string>& arguments) {
  const CommandResult result = run_trireme(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return json::parse(result.out);
}

TEST(Cli, OptionsMayBeWrittenWithUnderscores) {
  const json dashes = run_json({"models", "--model", "lenet", "--num-classes", "10", "--json"});
  const json underscores = run_json({"models", "--model=lenet", "--num_classes=10", "--json"});
  EXPECT_EQ(dashes, underscores);
  EXPECT_EQ(dashes.at("classes"), 10);
}

TEST(Cli, UnknownModelListsTheModels) {
  expect_refused({"models", "--model", "resnet5"}, {"'resnet5'; did you mean 'resnet50'?", "vgg16"});
  expect_refused({"models", "--model", "mine"}, {"unknown model 'mine'. The models are: ", "vgg16"});
}

TEST(Cli, BadOptionsOfModels) {
  expect_refused({"models", "--plan"}, {"--plan", "--model"});
  expect_refused({"models", "--model", "lenet", "--batch-size", "4"}, {"--batch-size", "--plan"});
  expect_refused({"models", "--model", "lenet", "--plan", "--batch-size", "0"}, {"--batch-size 0", "1"});
  expect_refused({"models", "--model", "lenet", "--plan", "--batch-size", "many"}, {"--batch-size", "many"});
  expect_refused({"models", "--model", "lenet", "--plan", "--data-format", "chwn"}, {"chwn", "auto, nchw, nhwc"});
  expect_refused({"models", "--model", "lenet", "--plan", "--backend", "abacus"}, {"abacus", "reference"});
  expect_refused({"models", "--model", "lenet", "--plan", "--optimizer", "luck"}, {"luck", "momentum"});
  expect_refused({"models", "--num-classes", "0"}, {"--num-classes", "0"});
}

TEST(Cli, ModelsListHasExactlyTheAgreedFields) {
  const json list = run_json({"models", "--json"});
  ASSERT_EQ(list.size(), model_list().size());
  std::map<std::string, json> by_name;
  for (const json& entry : list) {
    EXPECT_EQ(entry.size(), 6U) << entry;
    for (const char* field : {"image_size", "classes", "parameters", "gradient_tensors", "forward_macs"}) {
      EXPECT_TRUE(entry.at(field).is_number_integer()) << entry;
    }
    by_name[entry.at("name").get<std::string>()] = entry;
  }
  const json& resnet = by_name.at("resnet50");
  EXPECT_EQ(resnet.at("image_size"), 224);
  EXPECT_EQ(resnet.at("classes"), 1001);
  EXPECT_EQ(resnet.at("parameters"), 25'559'081);
  EXPECT_EQ(resnet.at("gradient_tensors"), 161);
  EXPECT_NEAR(resnet.at("forward_macs").get<double>(), 3.858e9, 0.0005e9);
  EXPECT_EQ(by_name.at("alexnet").at("parameters"), 61'842'345);
  EXPECT_EQ(by_name.at("vgg16").at("parameters"), 138'361'641);
  EXPECT_EQ(by_name.at("inception3").at("parameters"), 23'819'401);
}

TEST(Cli, ModelsTableNamesEveryModel) {
  const CommandResult result = run_trireme({"models"});
  EXPECT_EQ(result.exit_code, 0);
  for (const Network& info : model_list()) EXPECT_TRUE(contains(result.out, info.name));
  EXPECT_TRUE(contains(result.out, "25,559,081"));
}

TEST(Cli, LayersAddUpToTheModel) {
  for (const char* name : {"lenet", "resnet50", "googlenet"}) {
    const json model = run_json({"models", "--model", name, "--json"});
    std::int64_t parameters = 0, macs = 0;
    for (const json& layer : model.at("layers")) {
      parameters += layer.at("parameters").get<std::int64_t>();
      macs += layer.at("forward_macs").get<std::int64_t>();
    }
    EXPECT_EQ(parameters, model.at("parameters")) << name;
    EXPECT_EQ(macs, model.at("forward_macs")) << name;
  }
}

TEST(Cli, PlanOfEveryBackendAndMode) {
  for (const char* backend : {"default", "reference"}) {
    for (const bool forward_only : {false, true}) {
      std::vector<std::string> arguments{"models", "--model", "lenet", "--plan", "--batch-size", "2", "--json"};
      if (std::string(backend) == "reference") arguments.insert(arguments.end(), {"--backend", backend});
      if (forward_only) arguments.emplace_back("--forward-only");
      const json plan = run_json(arguments);
      EXPECT_FALSE(plan.at("instructions").empty());
      EXPECT_GT(plan.at("flops").get<double>(), 0);
      EXPECT_GE(plan.at("memory").at("unplanned_bytes"), plan.at("memory").at("planned_bytes"));
    }
  }
  const CommandResult text = run_trireme({"models", "--model", "lenet", "--plan", "--batch-size", "2"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_TRUE(contains(text.out, "batch size 2"));
}

// When gradients travel, beside what, for workers that reduce them and for workers with servers.
TEST(Cli, ThePlanShowsWhenGradientsTravel) {
  const auto plan = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"models", "--model", "lenet", "--plan", "--batch-size", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_trireme(arguments).out;
  };
  EXPECT_FALSE(contains(plan({}), "Gradients, and what runs during their transfer"));
  const std::string reduced = plan({"--workers", "2"});
  EXPECT_TRUE(contains(reduced, "Gradients, and what runs during their transfer"));
  EXPECT_TRUE(contains(reduced, "the end"));
  EXPECT_TRUE(contains(plan({"--workers", "2", "--ps", "1"}), "of the next step"));
}

TEST(Cli, ThePlanShowsADividedOptimizer) {
  if (default_backend() != "onednn") GTEST_SKIP() << "needs onednn";
  std::vector<std::string> arguments{"models", "--model", "lenet", "--plan", "--optimizer", "adam", "--workers", "4"};
  EXPECT_TRUE(contains(run_trireme(arguments).out, "all-reduce"));
  const auto optimizer_bytes = [](std::vector<std::string> words) {
    words.emplace_back("--json");
    return run_json(words).at("memory").at("optimizer_bytes").get<std::int64_t>();
  };
  const std::int64_t whole = optimizer_bytes(arguments);
  arguments.emplace_back("--shard-optimizer");
  EXPECT_TRUE(contains(run_trireme(arguments).out, "reduce-scatter, update, all-gather"));
  EXPECT_EQ(optimizer_bytes(arguments), (whole + 3) / 4);
}

TEST(Cli, PlacementOnParameterServers) {
  const json placed = run_json({"models", "--model", "vgg11", "--ps", "3", "--placement", "greedy", "--json"});
  EXPECT_EQ(placed.at("placement"), "greedy");
  ASSERT_EQ(placed.at("servers").size(), 3U);
  std::vector<std::int64_t> bytes(3);
  for (const json& variable : placed.at("variables")) {
    bytes.at(variable.at("server").get<std::size_t>()) += variable.at("bytes").get<std::int64_t>();
  }
  std::int64_t total = 0, largest = 0;
  for (std::size_t server = 0; server < 3; ++server) {
    EXPECT_EQ(placed.at("servers")[server].at("bytes"), bytes[server]);
    total += bytes[server];
    largest = std::max(largest, bytes[server]);
  }
  EXPECT_EQ(total, 4 * run_json({"models", "--model", "vgg11", "--json"}).at("parameters").get<std::int64_t>());
  EXPECT_NEAR(placed.at("imbalance").get<double>(), 3.0 * static_cast<double>(largest) / static_cast<double>(total),
              1e-9);

  const CommandResult text = run_trireme({"models", "--model", "vgg11", "--ps", "2", "--placement", "split"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  for (const char* part : {"2 parameter servers, placement split", "conv1/weights", "cut: 50 % 50 %", "ps 1", "50.0 %",
                           "imbalance", "1.000"}) {
    EXPECT_TRUE(contains(text.out, part));
  }
}

TEST(Cli, BadOptionsOfPlacement) {
  expect_refused({"models", "--model", "lenet", "--placement", "greedy"}, {"--placement", "--ps"});
  expect_refused({"models", "--ps", "2"}, {"--ps", "--model"});
  expect_refused({"models", "--model", "lenet", "--ps", "0"}, {"--ps", "0"});
  expect_refused({"models", "--model", "lenet", "--ps", "some"}, {"--ps", "some"});
  expect_refused({"models", "--model", "lenet", "--ps", "2", "--placement", "random"},
                 {"'random'", "round_robin, greedy, split"});
}

TEST(Cli, DoctorMeasures) {
  const json doctor = run_json({"doctor", "--json"});
  EXPECT_GE(doctor.at("machine").at("cores"), 1);
  EXPECT_GT(doctor.at("machine").at("memory").get<double>(), 0);
  EXPECT_GT(doctor.at("fma_peak").at("flops_per_second").get<double>(), 0);
  EXPECT_GT(doctor.at("memory_bandwidth").at("copy_bytes_per_second").get<double>(), 0);
  const json& passes = doctor.at("memory_bandwidth").at("copy_passes");
  EXPECT_GE(passes.at("count"), 5);
  EXPECT_LE(passes.at("worst"), passes.at("best"));
  EXPECT_GE(doctor.at("gpus"), 0);
  EXPECT_FALSE(doctor.at("build").at("version").get<std::string>().empty());
  // What is supported is either in the build or named with its package.
  const json& missing = doctor.at("missing_libraries");
  for (const auto& [library, package] :
       {std::pair("oneDNN", "libdnnl-dev"), std::pair("libjpeg-turbo", "libjpeg-dev"),
        std::pair("protobuf", "libprotobuf-dev, protobuf-compiler"), std::pair("zlib", "zlib1g-dev")}) {
    const bool found = doctor.at("build").at("libraries").contains(library);
    const auto named = std::find_if(missing.begin(), missing.end(),
                                    [package](const json& each) { return each.at("package") == package; });
    EXPECT_NE(found, named != missing.end()) << library;
    if (named != missing.end()) {
      EXPECT_TRUE(named->at("supported")) << library;
    }
  }
}

TEST(Cli, DoctorReads) {
  const CommandResult result = run_trireme({"doctor"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"cores", "caches", "NUMA", "FMA peak", "memory bandwidth", "oneDNN", "libopenmpi-dev",
                           "GPUs", "load now", "passes"}) {
    EXPECT_TRUE(contains(result.out, part));
  }
}

TEST(Cli, FullDiskIsAnError) {
  const CommandResult result =
      run_command({"/bin/sh", "-c", std::string(TRIREME_BINARY) + " models --json > /dev/full"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "standard output"));
}

}  // namespace
}  // namespace trireme::testkit
