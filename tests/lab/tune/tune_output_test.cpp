// What a tune says in the end: no more than its runs support.
#include "cli/tune_output.hpp"

#include <gtest/gtest.h>

#include "tests/lab/tune/tune_options.hpp"

namespace trireme::lab {
namespace {

class TuneConclusion : public testing::Test {
 protected:
  // A tune whose finals had these scores.
  TuneResult result_of(const std::vector<double>& chosen, const std::vector<double>& of_default) {
    TuneResult result;
    result.default_candidate = space_.default_cell;
    result.chosen = space_.default_cell == 0 ? 1 : 0;
    result.finalists = {result.chosen, result.default_candidate};
    for (const double score : chosen) add(result, result.chosen, score);
    for (const double score : of_default) add(result, result.default_candidate, score);
    result.gain = perf::compare(result.finals_of(result.chosen), result.finals_of(result.default_candidate));
    result.margin = result.gain;
    return result;
  }
  std::string text_of(const TuneResult& result) const { return cli::conclusion(space_, {}, result); }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  TuneSpace space_ = make_tune_space({.model = "lenet", .batches = {4, 8}}, testkit::tune_options(),
                                     {.cores = 2, .hardware_threads = 2}, {true, true});

 private:
  static void add(TuneResult& result, std::size_t candidate, double score) {
    TuneSample sample;
    sample.trial = {.candidate = candidate, .round = TuneRound::finals};
    sample.score = score;
    result.samples.push_back(sample);
  }
};

TEST_F(TuneConclusion, OneRunEachHasNeitherIntervalNorGain) {
  const TuneResult result = result_of({1934.9}, {100});
  EXPECT_EQ(cli::gain_text(result),
            "not shown: the median is 19.349 times the default, with too few runs for a test (1 and 1; 4 each would be "
            "enough)");
  const std::string text = text_of(result);
  EXPECT_FALSE(has(text, "best: ")) << text;
  EXPECT_TRUE(has(text, "chosen, although no gain was shown: ")) << text;
  EXPECT_TRUE(has(text, "-        -     1\n")) << "no spread of one run: " << text;
}

TEST_F(TuneConclusion, AGainIsWhatTheTestSupports) {
  const TuneResult result = result_of({120, 121, 122, 123}, {100, 101, 102, 103});
  EXPECT_EQ(cli::gain_text(result).rfind("1.197 times the default (1.1", 0), 0U) << cli::gain_text(result);
  EXPECT_TRUE(has(text_of(result), "\nbest: ")) << text_of(result);
}

TEST_F(TuneConclusion, WhatTheTestDoesNotSupportIsNotAGain) {
  const TuneResult result = result_of({100, 121, 99, 123}, {100, 101, 102, 98});
  EXPECT_EQ(cli::gain_text(result).rfind("not shown: the median is ", 0), 0U) << cli::gain_text(result);
  EXPECT_FALSE(has(text_of(result), "best: ")) << text_of(result);
}

}  // namespace
}  // namespace trireme::lab
