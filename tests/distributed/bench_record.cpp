#include "tests/distributed/bench_record.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace trireme::testkit {

nlohmann::json read_record(const std::filesystem::path& path) { return nlohmann::json::parse(std::ifstream(path)); }

std::vector<double> mean_losses(const nlohmann::json& record) {
  std::vector<double> means;
  const auto& ranks = record.at("losses");
  for (std::size_t step = 0; step < ranks.at(0).at(0).size(); ++step) {
    double sum = 0;
    for (const auto& rank : ranks) sum += rank.at(0).at(step).get<double>();
    means.push_back(sum / static_cast<double>(ranks.size()));
  }
  return means;
}

void expect_same_losses(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(actual[step], expected[step], tolerance * expected[step]) << "step " << step;
  }
}

}  // namespace trireme::testkit
