#include "trireme/backend/tune_cache.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"

namespace trireme {
namespace {

class TuneCacheTest : public testing::Test {
 protected:
  testkit::TemporaryFolder folder;
  std::string path = folder / "tune.json";
};

TEST_F(TuneCacheTest, WhatWasSavedIsFoundByTheNextProcess) {
  {
    TuneCache cache(path);
    EXPECT_FALSE(cache.find("conv", "direct"));
    cache.add("conv", "direct", 0.25, 1.5);
    EXPECT_EQ(cache.added(), 1);
    EXPECT_EQ(cache.seconds_spent(), 1.5);
    cache.save();
  }
  TuneCache next(path);
  EXPECT_EQ(next.find("conv", "direct"), 0.25);
  EXPECT_FALSE(next.find("conv", "winograd"));
  EXPECT_EQ(next.added(), 0);
}

TEST_F(TuneCacheTest, IsWrittenThroughALink) {
  std::ofstream(path) << "{}";
  std::filesystem::create_symlink("tune.json", folder / "link.json");
  TuneCache cache(folder / "link.json");
  cache.add("conv", "direct", 0.25);
  cache.save();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.json"));
  EXPECT_EQ(TuneCache(path).find("conv", "direct"), 0.25);
}

TEST_F(TuneCacheTest, WithoutAPathNothingIsWritten) {
  TuneCache cache;
  cache.add("conv", "direct", 1);
  cache.save();
  EXPECT_EQ(cache.find("conv", "direct"), 1);
}

TEST_F(TuneCacheTest, TimingsOfOtherProcessesAreKept) {
  TuneCache first(path), second(path);
  first.add("a", "direct", 1);
  second.add("b", "direct", 2);
  first.save();
  second.save();
  const TuneCache both(path);
  EXPECT_EQ(both.find("a", "direct"), 1);
  EXPECT_EQ(both.find("b", "direct"), 2);
}

TEST_F(TuneCacheTest, ManyProcessesWritingAtOnceLoseNothing) {
  constexpr int kProcesses = 8;
  for (int i = 0; i < kProcesses; ++i) {
    if (fork() == 0) {
      TuneCache cache(path);
      for (int k = 0; k < 20; ++k) {
        cache.add("problem " + std::to_string(i), "kernel " + std::to_string(k), i + 1);
        cache.save();
      }
      _exit(0);
    }
  }
  for (int i = 0; i < kProcesses; ++i) {
    int status = 0;
    ASSERT_GT(wait(&status), 0);
    EXPECT_EQ(status, 0);
  }
  const TuneCache all(path);
  for (int i = 0; i < kProcesses; ++i) {
    for (int k = 0; k < 20; ++k)
      EXPECT_EQ(all.find("problem " + std::to_string(i), "kernel " + std::to_string(k)), i + 1);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(name == "tune.json" || name == "tune.json.lock") << "left behind: " << name;
  }
}

TEST_F(TuneCacheTest, OldTimingsAreTakenAgainAllOfAProblemTogether) {
  TuneCache old(path, {.day = 100, .load = 0});
  old.add("conv", "direct", 1);
  old.add("conv", "winograd", 2);
  old.save();
  EXPECT_EQ(TuneCache(path, {.day = 100 + perf::kDaysTrusted, .load = 0}).fastest("conv"), "direct");
  TuneCache later(path, {.day = 101 + perf::kDaysTrusted, .load = 0});
  EXPECT_FALSE(later.fastest("conv"));
  later.add("conv", "winograd", 0.5);
  EXPECT_FALSE(later.find("conv", "direct")) << "it is not comparable";
  later.add("conv", "direct", 1);
  EXPECT_EQ(later.renewed(), 1);
  later.save();
  const TuneCache next(path, {.day = 102 + perf::kDaysTrusted, .load = 0});
  EXPECT_EQ(next.fastest("conv"), "winograd");
}

TEST_F(TuneCacheTest, TimingsOfABusyMachineAreTakenAgainWhenItIsQuiet) {
  TuneCache busy(path, {.day = 100, .load = 1});
  busy.add("conv", "direct", 1);
  busy.save();
  EXPECT_TRUE(TuneCache(path, {.day = 100, .load = 0.8}).find("conv", "direct"));
  EXPECT_FALSE(TuneCache(path, {.day = 100, .load = 0.1}).find("conv", "direct"));
  TuneCache slightly(path, {.day = 100, .load = perf::kBusyLoad / 2});
  slightly.add("conv", "direct", 2);
  slightly.save();
  EXPECT_EQ(TuneCache(path, {.day = 100, .load = 0}).find("conv", "direct"), 2);
}

// A long job has read the old timings, and meanwhile another has taken them again.
TEST_F(TuneCacheTest, NewerTimingsOfAnotherProcessAreKept) {
  TuneCache first(path, {.day = 100, .load = 0});
  first.add("conv", "direct", 1);
  first.save();
  const TuneCache::Conditions later{.day = 101 + perf::kDaysTrusted, .load = 0};
  TuneCache renewing(path, later);
  renewing.add("conv", "direct", 2);
  renewing.save();
  first.add("conv", "winograd", 0.5);
  first.save();
  EXPECT_EQ(TuneCache(path, later).fastest("conv"), "direct");
  EXPECT_EQ(TuneCache(path, later).find("conv", "direct"), 2);
}

TEST_F(TuneCacheTest, TimingsInDoubtAreTakenAgain) {
  TuneCache first(path);
  first.add("conv", "direct", 1);
  first.add("other", "direct", 2);
  first.save();
  TuneCache doubting(path);
  EXPECT_TRUE(doubting.find("conv", "direct"));
  doubting.doubt();
  doubting.save();
  const TuneCache next(path);
  EXPECT_FALSE(next.find("conv", "direct"));
  EXPECT_EQ(next.find("other", "direct"), 2) << "nobody found these wrong";
}

TEST_F(TuneCacheTest, ADoubtIsNotAboutTimingsThatAreNewer) {
  TuneCache first(path, {.day = 100, .load = 0});
  first.add("conv", "direct", 1);
  first.save();
  TuneCache doubting(path, {.day = 100, .load = 0});
  EXPECT_TRUE(doubting.find("conv", "direct"));
  TuneCache renewing(path, {.day = 101 + perf::kDaysTrusted, .load = 0});
  renewing.add("conv", "direct", 2);
  renewing.save();
  doubting.doubt();
  doubting.save();
  EXPECT_EQ(TuneCache(path, renewing.now()).find("conv", "direct"), 2);
}

// All workers choose by what the first one knows.
TEST_F(TuneCacheTest, WhatAnotherProcessFindsIsFoundHereWhateverTheLoad) {
  TuneCache first("", {.day = 100, .load = 1}), other("", {.day = 100, .load = 0});
  first.add("conv", "direct", 1);
  other.merge(first.text());
  EXPECT_EQ(other.find("conv", "direct"), 1);
  TuneCache later("", {.day = 300, .load = 1});
  later.merge(first.text());
  EXPECT_EQ(later.find("conv", "direct"), 1);
}

TEST_F(TuneCacheTest, AFileThatIsNoCacheCountsAsEmptyAndIsReplaced) {
  for (const char* content : {"", "{\"entries\": 3", "[1, 2]", "{\"version\": 0, \"entries\": {\"a\": {\"b\": 1}}}",
                              "{\"version\": 3, \"entries\": {\"a\": {\"b\": 1}}}",
                              "{\"version\": 3, \"entries\": {\"a\": {\"seconds\": {\"b\": \"fast\", \"c\": -1}, "
                              "\"day\": 1, \"load\": 0}}}"}) {
    std::ofstream(path) << content;
    TuneCache cache(path);
    EXPECT_FALSE(cache.find("a", "b")) << content;
    EXPECT_FALSE(cache.find("a", "c")) << content;
    cache.add("x", "y", 1);
    cache.save();
    EXPECT_EQ(TuneCache(path).find("x", "y"), 1) << content;
  }
}

TEST_F(TuneCacheTest, AnUnwritablePlaceIsAnError) {
  std::ofstream(folder / "file") << "no folder";
  TuneCache cache(folder / "file/tune.json");
  cache.add("a", "b", 1);
  EXPECT_THROW(cache.save(), Error);
}

}  // namespace
}  // namespace trireme
