// `trireme report` as users start it.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "run_command.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/base/unique_fd.hpp"
#include "trireme/record/run_record.hpp"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testkit::CommandResult;
using testkit::run_trireme;

class Report : public ::testing::Test {
 protected:
  // Five runs each of batches 8 and 16 at these speeds.
  std::string study(const std::string& name, double first, double second) {
    fs::create_directories(folder_ / name + "/runs");
    for (int repeat = 0; repeat < 5; ++repeat) {
      write(name, 8, repeat, first);
      write(name, 16, repeat, second);
    }
    return folder_ / name;
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  testkit::TemporaryFolder folder_;

 private:
  void write(const std::string& name, int batch, int repeat, double speed) {
    record::RunRecord record;
    record.command = {"trireme", "bench"};
    record.machine.host = "node1";
    record.machine.cpu = "A CPU";
    record.machine.cores = 4;
    record.config = {{"model", "resnet50"}, {"batch_size", batch}};
    record.results.images_per_second = speed * (1 + 0.001 * repeat);
    Json json = to_json(record);
    json["study"] = {{"name", "batches"}, {"cell", {{"batch-size", batch}}}, {"repeat", repeat}};
    write_json(json, folder_ / name + "/runs/b" + std::to_string(batch) + ".r" + std::to_string(repeat) + ".json");
  }
};

TEST_F(Report, PageIsWrittenBesideTheRecords) {
  const std::string folder = study("s", 100, 150);
  const CommandResult result = run_trireme({"report", folder});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("Batch 16 is the fastest of 2 configurations"), std::string::npos) << result.out;
  EXPECT_NE(read(folder + "/report.html").find("<title>batches</title>"), std::string::npos);
}

TEST_F(Report, TextFormatsGoToStdout) {
  const std::string folder = study("s", 100, 150);
  const CommandResult csv = run_trireme({"report", folder, "--format", "csv"});
  EXPECT_EQ(csv.out.rfind("study,framework,batch-size,images/s", 0), 0U) << csv.out;
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 11);
  EXPECT_EQ(run_trireme({"report", folder, "--format", "markdown"}).out.rfind("# batches\n", 0), 0U);
  EXPECT_EQ(run_trireme({"report", folder, "--format", "svg", "--out", "-"}).out.rfind("<svg", 0), 0U);
  // Another name of stdout: what is in the file already stays.
  const std::string kept = folder_ / "kept";
  const CommandResult added =
      testkit::run_command({"/bin/sh", "-c",
                            fmt::format("echo before > {0}; {1} report {2} --format svg --out /dev/stdout "
                                        ">> {0}; cat {0}",
                                        kept, TRIREME_BINARY, folder)});
  EXPECT_EQ(added.out.rfind("before\n", 0), 0U) << added.out;
  EXPECT_NE(added.out.find("</svg>"), std::string::npos);
}

TEST_F(Report, EndingOfTheFileDecidesTheFormat) {
  const std::string folder = study("s", 100, 150);
  const auto written = [&](const std::string& name, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"report", folder, "--out", folder_ / name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = run_trireme(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read(folder_ / name);
  };
  EXPECT_EQ(written("r.csv").rfind("study,framework,batch-size,images/s", 0), 0U);
  EXPECT_EQ(written("r.md").rfind("# batches\n", 0), 0U);
  EXPECT_EQ(written("R.MD").rfind("# batches\n", 0), 0U);
  EXPECT_EQ(written("r.svg").rfind("<svg", 0), 0U);
  EXPECT_EQ(written("r.txt", {"--format", "md"}).rfind("# batches\n", 0), 0U);
  EXPECT_EQ(written("r.markdown", {"--format", "md"}).rfind("# batches\n", 0), 0U);
  EXPECT_NE(written("r.html").find("<title>"), std::string::npos);
  EXPECT_EQ(Json::parse(written("r.json"))["findings"][0]["topic"], "fastest");
}

TEST_F(Report, DevicesAreWrittenToAndNotReplaced) {
  const std::string folder = study("s", 100, 150);
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const UniqueFd reader(open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(run_trireme({"report", folder, "--format", "csv", "--out", pipe}).exit_code, 0);
  EXPECT_TRUE(fs::is_fifo(pipe));
  std::array<char, 6> begin{};
  ASSERT_EQ(::read(reader.get(), begin.data(), begin.size()), 6);
  EXPECT_EQ(std::string(begin.data(), begin.size()), "study,");
}

TEST_F(Report, FoldersGetAFilePerFigure) {
  const std::string folder = study("s", 100, 150);
  EXPECT_EQ(run_trireme({"report", folder, "--format", "markdown", "--out", folder_ / "text/"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "text/report.md"));
  EXPECT_TRUE(fs::exists(folder_ / "text/batches-over-batch-size.svg"));
  EXPECT_EQ(run_trireme({"report", folder, "--format", "csv", "--out", folder_ / "csv/"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "csv/runs.csv"));
  EXPECT_TRUE(fs::exists(folder_ / "csv/batches-over-batch-size.csv"));
}

TEST_F(Report, GateFailsOnWhatTheTestSupports) {
  const std::string before = study("old", 100, 150), slower = study("slower", 100, 120),
                    same = study("same", 100, 149.9);
  const std::vector<std::string> gate{"--baseline", before,  "--fail-if-slower", "5%", "--format",
                                      "csv",        "--out", folder_ / "x.csv"};
  const auto judged = [&](const std::string& folder) {
    std::vector<std::string> arguments{"report", folder};
    arguments.insert(arguments.end(), gate.begin(), gate.end());
    return run_trireme(arguments);
  };
  const CommandResult failed = judged(slower);
  EXPECT_EQ(failed.exit_code, 1) << failed.err;
  EXPECT_NE(failed.err.find("slower by more than 5 %: batch 16: 0.800x"), std::string::npos) << failed.err;
  EXPECT_EQ(judged(same).exit_code, 0);
  EXPECT_EQ(judged(before).exit_code, 0);
  for (int repeat = 0; repeat < 5; ++repeat) fs::remove(same + "/runs/b16.r" + std::to_string(repeat) + ".json");
  const CommandResult lost = judged(same);
  EXPECT_EQ(lost.exit_code, 1) << lost.err;
  EXPECT_NE(lost.err.find("broken: batch 16: measured before, not now"), std::string::npos) << lost.err;
}

TEST_F(Report, BadInputIsRefused) {
  const std::string folder = study("s", 100, 150);
  const auto refused = [&](std::vector<std::string> arguments, const std::string& why) {
    arguments.insert(arguments.begin(), "report");
    const CommandResult result = run_trireme(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
  };
  refused({}, "records");
  refused({folder_ / "nowhere"}, "no such file or folder");
  refused({folder, "--format", "pdf"}, "pdf");
  refused({folder, "--out", folder_ / "r.pdf"}, ".html, .md, .csv, .svg or .json");
  refused({folder, "--out", folder_ / "r"}, ".html, .md, .csv, .svg or .json");
  refused({folder, "--out", folder_ / "r.html", "--format", "csv"}, "contradict");
  EXPECT_FALSE(fs::exists(folder_ / "r.html"));
  refused({folder, "--fail-if-slower", "5%"}, "--baseline");
  refused({folder, "--baseline", folder, "--fail-if-slower", "much"}, "percentage");
  refused({folder, "--format", "svg", "--figure", "other", "--out", "-"}, "batches-over-batch-size");
  std::ofstream(folder_ / "broken.json") << "{";
  refused({folder_ / "broken.json"}, "not valid JSON");
  const std::vector<std::vector<std::string>> of_records{
      {"--format", "csv"}, {"--out", "x"}, {"--figure", "x"}, {"--fail-if-slower", "5%"}, {"--baseline", folder}};
  for (const std::vector<std::string>& option : of_records) {
    refused({"--trace", "trace.json", option[0], option[1]}, option[0]);
  }
  refused({folder, "--operations", "3"}, "--trace");
}

}  // namespace
}  // namespace trireme
