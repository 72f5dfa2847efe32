// What a report says must follow from its runs, and no more than that.
#include <gtest/gtest.h>

#include "tests/report/record_builder.hpp"
#include "trireme/report/document.hpp"

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
    if (finding.text.find(part) != std::string::npos) return &finding;
  }
  return nullptr;
}

std::string all_text(const Document& document) {
  std::string text;
  for (const Finding& finding : document.findings) text += finding.text + "\n";
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
  EXPECT_NE(finding->text.find("at effective batch 64"), std::string::npos);
  EXPECT_NE(document.figure(finding->figure), nullptr);
}

TEST(Findings, ThreeRunsEachClaimNothing) {
  RecordSet records;
  add_runs(records, processes(1, 2, 64), {100, 101, 99});
  add_runs(records, processes(2, 1, 32), {500, 501, 499});
  const Document document = make_document(records);
  for (const Finding& finding : document.findings) EXPECT_NE(finding.kind, Finding::Kind::shown) << finding.text;
  EXPECT_NE(find(document, "not enough runs to tell (3 and 3; 4 each would do)"), nullptr) << all_text(document);
}

TEST(Findings, NoiseIsNoDifference) {
  RecordSet records;
  add_runs(records, processes(1, 2, 64), {100, 120, 101, 118, 104});
  add_runs(records, processes(2, 1, 32), {99, 119, 102, 117, 103});
  const Document document = make_document(records);
  for (const Finding& finding : document.findings) EXPECT_EQ(finding.kind, Finding::Kind::not_shown) << finding.text;
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

TEST(Findings, ScalingHasItsEfficiency) {
  RecordSet records;
  for (const auto& [workers, speed] : {std::pair{1, 100.0}, {2, 180.0}, {4, 300.0}}) {
    add_runs(records, RecordBuilder().study("w", {{"workers", workers}}).config("workers", workers), about(speed));
  }
  const Document document = make_document(records);
  const Finding* finding = find(document, "4 workers beat 1 worker by 3.00x");
  ASSERT_NE(finding, nullptr) << all_text(document);
  EXPECT_NE(finding->text.find("75 % of ideal"), std::string::npos);
}

TEST(Findings, ASlowerFrameworkIsSaidToBeSo) {
  RecordSet records;
  add_runs(records, RecordBuilder().study("f", {{"model", "vgg11"}}), about(100));
  add_runs(records, RecordBuilder().study("f", {{"model", "vgg11"}}).framework("pytorch"), about(125));
  const Document document = make_document(records);
  const Finding* finding = find(document, "Trireme reaches only 0.80x of the speed of pytorch");
  ASSERT_NE(finding, nullptr) << all_text(document);
  EXPECT_EQ(finding->kind, Finding::Kind::worse);
}

TEST(Findings, InputThatCostsNothingIsSaidToBeSo) {
  RecordSet records;
  const auto run = [&](std::vector<double> percent) {
    RecordSet one;
    one.runs.push_back(RecordBuilder().speed(100, {99, 100, 101}).io_overhead(std::move(percent)).run());
    return make_document(one);
  };
  EXPECT_NE(find(run({-1, 0.5, 1, 2, -3}), "No cost of input could be shown: the median is 0.5 %"), nullptr);
  EXPECT_NE(find(run({4, 5, 6}), "No cost of input could be shown: the median is 5.0 %"),
            nullptr);  // three show nothing
  const Document five = run({4, 5, 6, 5, 5});
  EXPECT_NE(find(five, "Input costs 5.0 % of the speed at most, with resnet50 (p = 0.031"), nullptr) << all_text(five);
}

TEST(Findings, FailuresAreNamed) {
  RecordSet records;
  add_runs(records, RecordBuilder().study("s", {{"batch-size", 32}}), about(100));
  records.runs.push_back(RecordBuilder().study("s", {{"batch-size", 4096}}).error("out of memory\nmore").run());
  const Document document = make_document(records);
  EXPECT_NE(find(document, "1 of 6 runs of 's' failed and are in no figure; the first: out of memory (made.json)"),
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
  EXPECT_NE(document.guidelines[0].text.find("Not told apart from it by these runs: batch 32."), std::string::npos);
  EXPECT_NE(document.guidelines[1].text.find("Nearly as fast with smaller batches: batch 16"), std::string::npos);
}

TEST(Document, FiguresOfTrainingAndNetworkAreIncluded) {
  RecordSet records;
  records.trainings.push_back({"a.json", testkit::training_record()});
  records.networks.push_back({"n.json", testkit::network_record()});
  const Document document = make_document(records);
  EXPECT_EQ(document.figures().size(), 5U);
  EXPECT_NE(find(document, "a: loss 0.5 after 2 epochs and 6.00 s of training; top-1 80.00 %"), nullptr)
      << all_text(document);
  EXPECT_NE(find(document, "at most 5 GB/s"), nullptr) << all_text(document);
}

}  // namespace
}  // namespace trireme::report
