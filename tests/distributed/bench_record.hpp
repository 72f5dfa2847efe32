// What `trireme bench --record` has written, as the tests of jobs compare it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace trireme::testkit {

nlohmann::json read_record(const std::filesystem::path& path);

// Losses of the timed steps, the mean over all workers: that of the whole batch. Every one depends on all variables as
// the steps before it have left them.
std::vector<double> mean_losses(const nlohmann::json& record);

// Each loss may differ by the part `tolerance` of it.
void expect_same_losses(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance);

}  // namespace trireme::testkit
