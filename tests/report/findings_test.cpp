// What a report says must follow from its runs, and no more than that.
#include "trireme/report/findings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/report/record_builder.hpp"
#include "trireme/report/finding_text.hpp"
#include "trireme/report/study_figures.hpp"

namespace trireme::report {
namespace {

using testkit::about;
using testkit::RecordBuilder;

RecordBuilder processes(int workers, int threads, int batch) {
  return RecordBuilder()
      .study("ppn", {{"workers", workers}, {"num-intra-threads", threads}})
      .config("workers", workers)
      .config("num_intra_threads", threads)
      .config("batch_size", batch);
}

const Finding* find(const Document& document, const std::string& part) {
  for (const Finding& finding : document.findings) {
    if (text_of(finding).find(part) != std::string::npos) return &finding;
  }
  return nullptr;
}

std::string all_text(const Document& document) {
  std::string text;
  for (const Finding& finding : document.findings) text += text_of(finding) + "\n";
  return text;
}

TEST(Findings, ProcessesAgainstThreadsAtTheSameEffectiveBatch) {
  RecordSet records;
  add_runs(records, processes(1, 2, 64), about(100));
  add_runs(records, processes(2, 1, 32), about(112));
  const Document document = make_document(records);
  const Finding* finding = find(document, "2 processes × 1 thread beat 1 process × 2 threads by 1.12x (p = 0.008");
  ASSERT_NE(finding, nullptr) << all_text(document);
  EXPECT_EQ(finding->kind, Finding::Kind::shown);
  EXPECT_NE(text_of(*finding).find("at effective batch 64"), std::string::npos);
  EXPECT_EQ(finding->subjects, (std::vector<std::string>{"2 processes × 1 thread", "1 process × 2 threads"}));
  EXPECT_EQ(finding->verdict, perf::Verdict::larger);
  EXPECT_NEAR(finding->ratio.value(), 1.12, 1e-12);
  EXPECT_NEAR(finding->p.value(), 2.0 / 252, 1e-12);
  EXPECT_LT(finding->interval.value().low, 1.12);
  EXPECT_FALSE(finding->interval->is_range);
  EXPECT_EQ(std::get<claim::Pair>(finding->claim).runs.first, 5U);
  EXPECT_NE(document.figure(finding->figure), nullptr);
}

TEST(Findings, ThreeRunsEachClaimNothing) {
  RecordSet records;
  add_runs(records, processes(1, 2, 64), {100, 101, 99});
  add_runs(records, processes(2, 1, 32), {500, 501, 499});
  const Document document = make_document(records);
  for (const Finding& finding : document.findings) EXPECT_NE(finding.kind, Finding::Kind::shown) << text_of(finding);
  EXPECT_NE(find(document, "not enough runs to tell (3 and 3; 4 each would be enough)"), nullptr) << all_text(document);
}

TEST(Findings, NoiseIsNoDifference) {
  RecordSet records;
  add_runs(records, processes(1, 2, 64), {100, 120, 101, 118, 104});
  add_runs(records, processes(2, 1, 32), {99, 119, 102, 117, 103});
  const Document document = make_document(records);
  for (const Finding& finding : document.findings)
    EXPECT_EQ(finding.kind, Finding::Kind::not_shown) << text_of(finding);
  EXPECT_NE(find(document, "No difference between"), nullptr);
  EXPECT_EQ(find(document, " beat"), nullptr);
}

TEST(Findings, TheFastestMustBeatEachOfTheOthers) {
  const auto batch = [](int size) {
    return RecordBuilder().study("b", {{"batch-size", size}}).config("batch_size", size);
  };
  RecordSet records;
  add_runs(records, batch(8), about(50));
  add_runs(records, batch(16), about(100));
  add_runs(records, batch(32), about(200));
  EXPECT_NE(find(make_document(records), "Batch 32 is the fastest of 3 configurations: 200 images/s, 2.00x the next"),
            nullptr)
      << all_text(make_document(records));
  add_runs(records, batch(64), about(200.2));  // as good as the same
  const Document document = make_document(records);
  EXPECT_EQ(find(document, "is the fastest"), nullptr);
  EXPECT_NE(find(document, "Batch 64 has the highest median of 4 configurations"), nullptr) << all_text(document);
}

TEST(Findings, TooFewRunsAreThoseOfTheWeakestComparison) {
  RecordSet records;
  for (const auto& [size, runs] : {std::pair{8, 1U}, {16, 5U}, {32, 5U}}) {
    std::vector<double> speeds = about(10 * size);
    speeds.resize(runs);
    add_runs(records, RecordBuilder().study("b", {{"batch-size", size}}).config("batch_size", size), speeds);
  }
  EXPECT_NE(find(make_document(records), "not enough runs to tell (5 and 1; 4 each would be enough)"), nullptr)
      << all_text(make_document(records));
}

TEST(Findings, OneEqualTakesTheFirstPlaceFromAll) {  // whatever comes after it
  const auto batch = [](int size) {
    return RecordBuilder().study("b", {{"batch-size", size}}).config("batch_size", size);
  };
  RecordSet records;
  add_runs(records, batch(8), about(200));
  add_runs(records, batch(16), about(200));
  add_runs(records, batch(32), about(50));
  const Document document = make_document(records);
  EXPECT_EQ(find(document, "is the fastest"), nullptr) << all_text(document);
  EXPECT_NE(find(document, "Batch 8 has the highest median of 3 configurations"), nullptr);
}

TEST(Findings, MachinesAreNotCompared) {
  RecordSet records;
  add_runs(records, RecordBuilder(), about(100));
  add_runs(records, RecordBuilder().host("node2"), about(300));
  const Document document = make_document(records);
  EXPECT_TRUE(document.findings.empty()) << all_text(document);
  ASSERT_EQ(document.warnings.size(), 1U);
}

TEST(Findings, FourRunsInManySettingsTellFrameworksApartTogether) {
  RecordSet records;
  const std::vector<double> four{99, 100, 101, 102};
  for (const char* model : {"a", "b", "c", "d", "e", "f"}) {
    const Json cell{{"model", model}};
    for (const double speed : four) {
      add_runs(records, RecordBuilder().study("s", cell).config("model", model), {1.5 * speed});
      add_runs(records, RecordBuilder().study("s", cell).config("model", model).framework("pytorch"), {speed});
    }
  }
  const Document document = make_document(records);
  EXPECT_NE(find(document, "Trireme beats pytorch overall: 1.50x over 6 settings, from 1.50x to 1.50x (p < 0.001)"),
            nullptr)
      << all_text(document);
  EXPECT_EQ(find(document, "Trireme against pytorch"), nullptr) << "each by itself is not worth a line";
}

TEST(Findings, GpusAreNotCompared) {
  RecordSet records;
  add_runs(records, RecordBuilder().gpu("cuda:0 (A)"), about(100));
  add_runs(records, RecordBuilder().gpu("cuda:0 (B)"), about(300));
  const Document document = make_document(records);
  EXPECT_TRUE(document.findings.empty()) << all_text(document);
  ASSERT_EQ(document.warnings.size(), 1U);
}

TEST(Findings, ScalingHasItsEfficiency) {
  RecordSet records;
  for (const auto& [workers, speed] : {std::pair{1, 100.0}, {2, 180.0}, {4, 300.0}}) {
    add_runs(records, RecordBuilder().study("w", {{"workers", workers}}).config("workers", workers), about(speed));
  }
  const Document document = make_document(records);
  const Finding* finding = find(document, "4 workers beat 1 worker by 3.00x");
  ASSERT_NE(finding, nullptr) << all_text(document);
  EXPECT_NE(text_of(*finding).find("75 % of ideal"), std::string::npos);
  EXPECT_NEAR(std::get<claim::Pair>(finding->claim).efficiency.value().y, 0.75, 1e-12);
}

TEST(Findings, ASlowerFrameworkIsSaidToBeSo) {
  RecordSet records;
  add_runs(records, RecordBuilder().study("f", {{"model", "vgg11"}}), about(100));
  add_runs(records, RecordBuilder().study("f", {{"model", "vgg11"}}).framework("pytorch"), about(125));
  const Document document = make_document(records);
  const Finding* finding = find(document, "Trireme reaches only 0.80x of the speed of pytorch");
  ASSERT_NE(finding, nullptr) << all_text(document);
  EXPECT_EQ(finding->kind, Finding::Kind::worse);
  EXPECT_EQ(finding->verdict, perf::Verdict::smaller);
  EXPECT_NEAR(finding->ratio.value(), 0.8, 1e-12);
}

RecordSet input_records(int workers, const std::vector<double>& percent) {
  RecordSet records;
  for (const double lost : percent) {
    records.runs.push_back(RecordBuilder()
                               .study("io", {{"workers", workers}})
                               .config("workers", workers)
                               .speed(100)
                               .io_overhead({lost})
                               .run());
  }
  return records;
}

TEST(Findings, InputThatCostsNothingIsSaidToBeSo) {
  const auto report = [](const std::vector<double>& percent) { return make_document(input_records(1, percent)); };
  EXPECT_NE(find(report({-1, 0.5, 1, 2, -3}), "No cost of input could be shown (p = 0.50): a median of 0.5 %"),
            nullptr);
  EXPECT_NE(find(report({4, 5, 6}), "Not enough runs to tell whether input costs speed (3): a median of 5.0 %"),
            nullptr);
  const Document five = report({4, 5, 6, 5, 5});
  const Finding* finding = find(five, "Input costs speed (p = 0.031): a median of 5.0 % of the speed with resnet50.");
  ASSERT_NE(finding, nullptr) << all_text(five);
  EXPECT_NEAR(finding->ratio.value(), 0.95, 1e-12);  // of the speed without input
  EXPECT_NEAR(finding->p.value(), 1.0 / 32, 1e-12);
  EXPECT_FALSE(finding->interval.has_value());
  EXPECT_EQ(finding->kind, Finding::Kind::shown);
}

TEST(Findings, InputIsJudgedOverAllConfigurationsTogether) {
  RecordSet records = input_records(1, {1, 2, 3});
  for (const report::Run& run : input_records(2, {4, 5, 6}).runs) records.runs.push_back(run);
  const Document document = make_document(records);
  EXPECT_NE(
      find(document, "Input costs speed (p = 0.016): a median of 5.0 % of the speed with 2 workers, the most of 2"),
      nullptr)
      << all_text(document);
}

TEST(Findings, RepeatsOfOneProcessAreOneRun) {
  RecordSet records;
  records.runs.push_back(
      RecordBuilder().speed(100, {99, 100, 101, 102, 98}).io_overhead({4, 5, 6, 5, 5}).config("batch_size", 8).run());
  records.runs.push_back(RecordBuilder().speed(50, {49, 50, 51, 52, 48}).config("batch_size", 16).run());
  const Document document = make_document(records);
  for (const Finding& finding : document.findings) EXPECT_NE(finding.kind, Finding::Kind::shown) << text_of(finding);
  EXPECT_NE(find(document, "(1 and 1, counting repeats of a process as one run; 4 each would be enough)"), nullptr)
      << all_text(document);
  EXPECT_NE(find(document, "Not enough runs to tell whether input costs speed (1)"), nullptr) << all_text(document);
}

RecordBuilder grid(int threads, int batch) {
  return RecordBuilder()
      .study("g", {{"num-intra-threads", threads}, {"batch-size", batch}})
      .config("num_intra_threads", threads)
      .config("batch_size", batch);
}

TEST(Findings, OptionsThatMatterAreNamedWithFiveRunsOfMany) {
  RecordSet records;
  for (int threads = 1; threads <= 8; ++threads) {
    for (const int batch : {8, 9}) add_runs(records, grid(threads, batch), about(100 + 5 * threads));
  }
  const Document document = make_document(records);
  const Finding* threads = find(document,
                                "The choice of threads per worker makes a difference (p < 0.001): "
                                "the median of 8 threads is 1.33x that of 1 thread with batch 8.");
  ASSERT_NE(threads, nullptr) << all_text(document);
  EXPECT_EQ(threads->kind, Finding::Kind::shown);
  EXPECT_EQ(threads->subjects, (std::vector<std::string>{"threads per worker", "8 threads", "1 thread"}));
  EXPECT_NEAR(threads->ratio.value(), 140.0 / 105, 1e-12);
  EXPECT_NE(find(document, "No effect of the choice of batch per worker could be shown"), nullptr)
      << all_text(document);
}

TEST(Findings, NoiseIsFoundToMatterNoMoreOftenThanItMay) {
  constexpr int kTrials = 120;
  std::mt19937_64 random(3);
  int options = 0, processes_found = 0, input = 0, best = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    RecordSet records;
    for (const int threads : {1, 2, 4}) {
      for (const int size : {1, 2}) {
        for (int run = 0; run < 5; ++run) {
          const double speed = 100 + static_cast<double>(random() % 1000) / 100;
          records.runs.push_back(processes(4 / threads, threads, size * threads)
                                     .study("n", {{"num-intra-threads", threads}, {"size", size}})
                                     .speed(speed)
                                     .io_overhead({static_cast<double>(random() % 1000) / 100 - 5})
                                     .run());
        }
      }
    }
    const Study study = make_studies(records).at(0);
    std::vector<Finding> findings = comparison_findings(study, {});
    for (const Finding& finding : fact_findings(study, {})) findings.push_back(finding);
    const auto shows = [&](const char* part) {
      return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
        return finding.kind != Finding::Kind::not_shown && text_of(finding).find(part) != std::string::npos;
      });
    };
    options += shows("makes a difference");
    processes_found += shows("process");
    input += shows("Input costs");
    best += shows("is the fastest");
  }
  for (const int found : {options, processes_found, input, best}) EXPECT_LE(found, 0.09 * kTrials);
}

TEST(Findings, FrameworksAreComparedWithEachBuild) {
  RecordSet records;
  add_runs(records, RecordBuilder().study("f", {{"model", "vgg11"}}), about(100));
  add_runs(records, RecordBuilder().study("f", {{"model", "vgg11"}}).commit("def456"), about(150));
  add_runs(records, RecordBuilder().study("f", {{"model", "vgg11"}}).framework("pytorch").version("2.1"), about(125));
  const Document document = make_document(records);
  EXPECT_NE(find(document, "Trireme reaches only 0.80x of the speed of pytorch"), nullptr) << all_text(document);
  EXPECT_NE(find(document, "Trireme beats pytorch by 1.20x"), nullptr) << all_text(document);
}

TEST(Findings, WorkThatDiffersIsNotRanked) {
  RecordSet records;
  for (const char* precision : {"fp32", "bf16"}) {
    add_runs(records, RecordBuilder().study("p", {{"precision", precision}}).config("precision", precision),
             about(*precision == 'b' ? 180 : 100));
  }
  const Document document = make_document(records);
  EXPECT_EQ(find(document, "is the fastest"), nullptr) << all_text(document);
  EXPECT_NE(find(document, "The choice of precision makes a difference (p = 0.008"), nullptr) << all_text(document);
  EXPECT_NE(find(document, "the median of bf16 is 1.80x that of fp32"), nullptr) << all_text(document);
}

TEST(Findings, FailuresAreNamed) {
  RecordSet records;
  add_runs(records, RecordBuilder().study("s", {{"batch-size", 32}}), about(100));
  records.runs.push_back(RecordBuilder().study("s", {{"batch-size", 4096}}).error("out of memory\nmore").run());
  const Document document = make_document(records);
  EXPECT_NE(find(document, "1 of 6 runs of 's' failed and are not in any figure; the first: out of memory (made.json)"),
            nullptr)
      << all_text(document);
}

TEST(Guidelines, TheBestCommandAndWhatIsAsGood) {
  RecordSet records;
  const auto batch = [](int size) {
    return RecordBuilder().study("b", {{"batch-size", size}}).config("batch_size", size);
  };
  add_runs(records, batch(16), about(196));
  add_runs(records, batch(32), about(200));
  add_runs(records, batch(64), about(200.2));
  const Document document = make_document(records);
  ASSERT_EQ(document.guidelines.size(), 2U);
  EXPECT_EQ(document.guidelines[0].command, "trireme bench --model resnet50");
  EXPECT_NE(document.guidelines[0].text.find("Most images per second with resnet50: batch 64"), std::string::npos);
  EXPECT_NE(document.guidelines[0].text.find("These runs show no difference from: batch 32."), std::string::npos);
  EXPECT_NE(document.guidelines[1].text.find("Nearly as fast with smaller batches: batch 16"), std::string::npos);
}

TEST(Guidelines, WorkersThatExchangeNothingAreNoWayToTrain) {
  const auto update = [](const char* kind, int batch) {
    return RecordBuilder().config("workers", 2).config("variable_update", kind).config("batch_size", batch);
  };
  RecordSet records;
  for (const int batch : {8, 16}) {
    add_runs(records, update("all_reduce", batch), about(100 + 2 * batch));
    add_runs(records, update("independent", batch), about(150 + 2 * batch));
  }
  const Document document = make_document(records);
  ASSERT_EQ(document.guidelines.size(), 2U);
  EXPECT_NE(document.guidelines[0].text.find("Most images per second with resnet50: batch 16, all_reduce"),
            std::string::npos)
      << document.guidelines[0].text;
  EXPECT_NE(document.guidelines[1].text.find("resnet50, workers exchanging nothing"), std::string::npos)
      << document.guidelines[1].text;
}

TEST(Document, FiguresOfTrainingAndNetworkAreIncluded) {
  RecordSet records;
  records.trainings.push_back(testkit::training("a.json"));
  records.networks.push_back(testkit::network("n.json"));
  const Document document = make_document(records);
  EXPECT_EQ(document.figures().size(), 5U);
  EXPECT_NE(find(document, "a: loss 0.5 after 2 epochs and 6.00 s of training; top-1 80.00 %"), nullptr)
      << all_text(document);
  EXPECT_NE(find(document, "at most 5 GB/s"), nullptr) << all_text(document);
}

TEST(Document, ATrainingThatWasResumedSaysHowLongItsPartsTook) {
  RecordSet records;
  Json json = testkit::training_record();
  json["resumed"] = {{"step", 1}, {"epoch", 0.5}, {"train_seconds", 11.0}, {"epoch_seconds", 1.0}};
  json["train_seconds"] = 16.0;
  json["train_seconds_here"] = 5.0;
  records.trainings.push_back(testkit::training("a.json", json));
  const Document document = make_document(records);
  EXPECT_NE(find(document,
                 "after 2 epochs and 16.00 s of training (5.00 s of it since it was resumed at step 1 "
                 "(epoch 0.50))"),
            nullptr)
      << all_text(document);
  EXPECT_DOUBLE_EQ(*training_figures(records.trainings)[0].table.rows[1].back().number, 17);  // with evaluation
}

}  // namespace
}  // namespace trireme::report
