// `trireme data` as a user meets it.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/run_command.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trireme::testkit {
namespace {

using nlohmann::json;

CommandResult data(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "data");
  return run_trireme(std::move(arguments));
}

void expect_done(const std::vector<std::string>& arguments) {
  const CommandResult result = data(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
}

void expect_refused(const std::vector<std::string>& arguments, const std::vector<std::string>& parts) {
  const CommandResult result = data(arguments);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(result.err.rfind("trireme: error: ", 0), 0U) << result.err;
  for (const std::string& part : parts) EXPECT_NE(result.err.find(part), std::string::npos) << part << result.err;
}

json inspect(const std::string& path) {
  const CommandResult result = data({"inspect", path, "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return json::parse(result.out);
}

TEST(CliData, MakesConvertsInspectsAndVerifies) {
  const TemporaryFolder folder;
  expect_done({"make", "--out", folder / "a", "--format", "folder", "--samples", "30", "--validation-samples", "6",
               "--classes", "12", "--size", "48x40"});
  expect_done({"convert", folder / "a", "--out", folder / "b", "--format", "tfrecord", "--shards", "4"});
  expect_done({"convert", folder / "b", "--out", folder / "c", "--format", "idx"});
  for (const auto& [name, format] : {std::pair{"a", "folder"}, {"b", "tfrecord"}, {"c", "idx"}}) {
    const json found = inspect(folder / name);
    EXPECT_EQ(found.at("format"), format);
    ASSERT_EQ(found.at("splits").size(), 2U);
    const json& train = found.at("splits")[0];
    EXPECT_EQ(train.at("samples"), 30);
    EXPECT_EQ(train.at("classes").size(), 12U);
    EXPECT_EQ(train.at("classes")[11].at("name"), "square-striped");
    EXPECT_EQ(train.at("dimensions")[0].at("width"), 48);
    EXPECT_EQ(train.at("dimensions")[0].at("height"), 40);
    EXPECT_EQ(found.at("splits")[1].at("samples"), 6);
    const CommandResult verified = data({"verify", folder / name});
    EXPECT_EQ(verified.exit_code, 0) << verified.err;
    EXPECT_EQ(verified.out, "train: 30 samples read, 0 broken\nvalidation: 6 samples read, 0 broken\n");
  }
  const CommandResult text = data({"inspect", folder / "b"});
  EXPECT_NE(text.out.find("train-00000-of-00004, byte 0"), std::string::npos) << text.out;
}

TEST(CliData, VerifyNamesWhatIsBroken) {
  const TemporaryFolder folder;
  expect_done({"make", "--out", folder / "a", "--format", "tfrecord", "--samples", "8", "--validation-samples", "0",
               "--shards", "2", "--size", "32"});
  const json first = json::parse(data({"inspect", folder / "a", "--json", "--first", "2"}).out);
  const std::string second = first.at("splits")[0].at("first")[1].at("where");  // "train-00000-of-00002, byte N"
  const auto offset = std::stol(second.substr(second.rfind(' ')));
  {
    std::fstream file(folder / "a/train-00000-of-00002", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset + 500);
    file.write("damage", 6);
  }
  std::filesystem::resize_file(folder / "a/train-00001-of-00002", 40);
  const CommandResult result = data({"verify", folder / "a"});
  EXPECT_EQ(result.exit_code, 1);
  for (const std::string& part :
       {second + ": the CRC of the record's data is wrong", std::string("train-00001-of-00002, byte 0: a record of"),
        std::string("train: 4 samples read, 2 broken")}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
  }
  const CommandResult as_json = data({"verify", folder / "a", "--json"});
  EXPECT_EQ(as_json.exit_code, 1);
  EXPECT_EQ(json::parse(as_json.out).at("broken"), 2);
}

TEST(CliData, CompressedTfRecordsAreReadLikeOthers) {
  const TemporaryFolder folder;
  expect_done({"make", "--out", folder / "a", "--format", "tfrecord", "--samples", "8", "--validation-samples", "1",
               "--shards", "2", "--size", "32", "--classes", "4"});
  ASSERT_EQ(std::system(("gzip " + (folder / "a/train-*")).c_str()), 0);
  EXPECT_EQ(inspect(folder / "a").at("splits")[0].at("samples"), 8);
  EXPECT_EQ(data({"verify", folder / "a"}).out,
            "train: 8 samples read, 0 broken\nvalidation: 1 sample read, 0 broken\n");
  const CommandResult one = data({"inspect", folder / "a/train-00000-of-00002.gz"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_NE(one.out.find("train: 4 samples"), std::string::npos) << one.out;
}

// What cannot be read is not a data set of 0 samples.
TEST(CliData, InspectFailsWhereNothingCanBeRead) {
  const TemporaryFolder folder;
  std::ofstream(folder / "junk") << "this is not a file of TFRecords";
  const CommandResult junk = data({"inspect", folder / "junk"});
  EXPECT_EQ(junk.exit_code, 2) << junk.out;
  EXPECT_NE(junk.err.find("nothing in the train data of '" + (folder / "junk")), std::string::npos) << junk.err;
  EXPECT_NE(junk.err.find("byte 0: the CRC of the record's length is wrong"), std::string::npos) << junk.err;
  std::ofstream(folder / "empty") << "";
  expect_refused({"inspect", folder / "empty"}, {"has no samples"});
  expect_refused({"verify", folder / "empty"}, {"has no samples"});
}

TEST(CliData, InspectNamesWhatIsBrokenAndSaysWhatItLooksAt) {
  const TemporaryFolder folder;
  expect_done({"make", "--out", folder / "a", "--format", "folder", "--samples", "8", "--validation-samples", "0",
               "--classes", "2", "--size", "96"});
  std::vector<std::string> images;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "a/train")) {
    if (entry.is_regular_file()) images.push_back(entry.path());
  }
  std::ofstream(images[0]) << "no image";
  std::filesystem::resize_file(images[1], std::filesystem::file_size(images[1]) / 2);  // its header is whole
  std::ofstream(std::filesystem::path(images[2]).parent_path() / "a.png") << "x";
  const CommandResult inspected = data({"inspect", folder / "a"}), verified = data({"verify", folder / "a"});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_NE(
      inspected.out.find("broken   1 (judged by framing, labels and image headers; `verify` decodes every image)"),
      std::string::npos)
      << inspected.out;
  EXPECT_NE(inspected.out.find(images[0]), std::string::npos) << inspected.out;
  EXPECT_NE(verified.out.find("train: 8 samples read, 2 broken"), std::string::npos) << verified.out;
  for (const CommandResult& result : {inspected, verified}) {
    EXPECT_NE(
        result.out.find("there is 1 file that is not a JPEG image in a class folder and is skipped: 1 .png (such as "),
        std::string::npos)
        << result.out;
  }
}

TEST(CliData, NamesOfClassesThatAreInTheRecordsAreKept) {
  const TemporaryFolder folder;
  expect_done({"make", "--out", folder / "a", "--format", "tfrecord", "--samples", "12", "--validation-samples", "0",
               "--size", "32", "--classes", "4"});
  std::filesystem::remove(folder / "a/classes.txt");
  const json before = inspect(folder / "a").at("splits")[0].at("classes");
  EXPECT_EQ(before[1].at("name"), "square");
  for (const std::string format : {"tfrecord", "folder", "idx"}) {
    expect_done({"convert", folder / "a", "--out", folder / format, "--format", format});
    EXPECT_TRUE(std::filesystem::exists(folder / (format + "/classes.txt"))) << format;
    EXPECT_EQ(inspect(folder / format).at("splits")[0].at("classes"), before) << format;
  }
}

TEST(CliData, OneIsSingular) {
  const TemporaryFolder folder;
  const CommandResult made = data({"make", "--out", folder / "a", "--samples", "1", "--validation-samples", "1"});
  EXPECT_NE(made.out.find("a: 1 train sample of 10 classes, idx\n"), std::string::npos) << made.out;
  EXPECT_NE(data({"inspect", folder / "a"}).out.find("train: 1 sample\n"), std::string::npos);
  EXPECT_EQ(data({"verify", folder / "a"}).out,
            "train: 1 sample read, 0 broken\nvalidation: 1 sample read, 0 broken\n");
}

TEST(CliData, ConvertLeavesBrokenSamplesOut) {
  const TemporaryFolder folder;
  expect_done({"make", "--out", folder / "a", "--format", "folder", "--samples", "40", "--validation-samples", "4",
               "--classes", "4", "--size", "32"});
  std::vector<std::string> images;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "a/train")) {
    if (entry.is_regular_file()) images.push_back(entry.path());
  }
  std::ofstream(images[3]) << "no image";
  std::filesystem::resize_file(images[8], std::filesystem::file_size(images[8]) / 2);
  for (const std::string format : {"tfrecord", "folder", "idx"}) {
    const std::string out = folder / format;
    const std::vector<std::string> convert{"convert", folder / "a", "--out", out, "--format", format};
    const auto with_most = [&](const std::string& most) {
      std::vector<std::string> words = convert;
      words.insert(words.end(), {"--max-bad-records", most});
      return data(words);
    };
    if (format != "folder") {  // which takes JPEG files as they are
      const CommandResult none_allowed = data(convert);
      EXPECT_EQ(none_allowed.exit_code, 1) << none_allowed.err;
      EXPECT_EQ(none_allowed.err.find("the same command"), std::string::npos) << none_allowed.err;
    }
    const CommandResult one_too_many = with_most("1");
    EXPECT_EQ(one_too_many.exit_code, 1) << one_too_many.err;
    EXPECT_NE(one_too_many.err.find("(bad record number 2; --max-bad-records 1)"), std::string::npos)
        << one_too_many.err;
    EXPECT_FALSE(std::filesystem::exists(out));

    const CommandResult result = with_most("2");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find("left out: 2 broken"), std::string::npos) << result.out;
    for (const std::string& image : {images[3], images[8]}) {
      EXPECT_NE(result.err.find("warning: left out: " + image), std::string::npos) << result.err;
    }
    const CommandResult verified = data({"verify", out});
    EXPECT_EQ(verified.out, "train: 38 samples read, 0 broken\nvalidation: 4 samples read, 0 broken\n");
  }
}

TEST(CliData, GoesOnAfterAnInterrupt) {
  const TemporaryFolder folder;
  const std::vector<std::string> make{"data", "make",     "--out", folder / "a", "--format", "tfrecord",  "--samples",
                                      "1000", "--shards", "40",    "--size",     "160x120",  "--threads", "1"};
  CommandOptions interrupted;
  interrupted.signal = SIGINT;
  interrupted.signal_delay = std::chrono::milliseconds(300);
  const CommandResult first = run_trireme(make, interrupted);
  if (first.exit_code != 0) {  // a fast machine may have been done
    EXPECT_EQ(first.exit_code, 130) << first.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "a"));
    EXPECT_EQ(run_trireme(make).exit_code, 0);
  }
  const CommandResult verified = data({"verify", folder / "a"});
  EXPECT_EQ(verified.exit_code, 0) << verified.out;
  EXPECT_FALSE(std::filesystem::exists(folder / "a.unfinished"));
}

TEST(CliData, AFolderThatCannotBeMadeIsNamed) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  const CommandResult result = data({"make", "--out", folder / "file/below"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("cannot make the folder '" + (folder / "file/below")), std::string::npos) << result.err;
}

TEST(CliData, BadInput) {
  const TemporaryFolder folder;
  expect_refused({}, {"use make, convert, inspect or verify"});
  expect_refused({"fly"}, {"unknown command 'fly' of data", "trireme data --help"});
  expect_refused({"make"}, {"--out is missing", "trireme data make --help"});
  expect_refused({"make", "--out", folder / "a", "--colour"},
                 {"unknown option '--colour'", "trireme data make --help"});
  expect_refused({"make", "--out", folder / "a", "--format", "png"}, {"'png'", "tfrecord, folder, idx"});
  expect_refused({"make", "--out", folder / "a", "--size", "28x"}, {"--size 28x", "500x375"});
  expect_refused({"make", "--out", folder / "a", "--size", "2"}, {"--size 2", "from 8"});
  expect_refused({"make", "--out", folder / "a", "--classes", "11"}, {"11 classes of digits", "2 to 10"});
  expect_refused({"make", "--out", folder / "a", "--samples", "0"}, {"--samples"});
  expect_refused({"inspect", folder / "a"}, {"there is no folder or file"});
  expect_refused({"verify", folder.path()}, {"holds no data set", "it holds nothing"});
  expect_refused({"convert", folder.path(), "--out", folder / "a"}, {"--format is missing"});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace trireme::testkit
