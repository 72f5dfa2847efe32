// Device strings, and how variables get them.
#include "trireme/graph/device.hpp"

#include <gtest/gtest.h>

#include "tests/graph/expect_error.hpp"
#include "trireme/graph/functions.hpp"

namespace trireme {
namespace {

using testkit::expect_bad_input;

TEST(ParseDevice, EveryFormThatTensorFlowUsersWrite) {
  const auto canonical = [](std::string_view text) { return to_string(parse_device(text)); };
  EXPECT_EQ(canonical("/job:ps/task:1/cpu:0"), "/job:ps/task:1/cpu:0");
  EXPECT_EQ(canonical("/job:worker/replica:0/task:12/device:GPU:3"), "/job:worker/task:12/gpu:3");
  EXPECT_EQ(canonical("/job:ps"), "/job:ps");
  EXPECT_EQ(canonical("/cpu:0"), "/cpu:0");
  EXPECT_EQ(canonical("/GPU:1"), "/gpu:1");
  EXPECT_EQ(canonical("/device:cpu:0/task:2/job:ps"), "/job:ps/task:2/cpu:0");
  EXPECT_EQ(canonical(""), "");
}

TEST(ParseDevice, PartsThatAreLeftOutAreNotSet) {
  const Device device = parse_device("/job:ps/task:1");
  EXPECT_EQ(device.job, Device::Job::ps);
  EXPECT_EQ(device.task, 1);
  EXPECT_FALSE(device.processor.has_value());
}

TEST(ParseDevice, ErrorsNameTheStringAndThePart) {
  expect_bad_input([] { parse_device("cpu:0"); }, {"device 'cpu:0'", "/job:ps/task:1/cpu:0"});
  expect_bad_input([] { parse_device("/job:master/task:0"); },
                   {"/job:master/task:0", "unknown job 'master'", "worker"});
  expect_bad_input([] { parse_device("/job:ps/task:one"); }, {"'/task:one'", "a number"});
  expect_bad_input([] { parse_device("/job:ps/task:-1"); }, {"'/task:-1'", "a number from 0"});
  expect_bad_input([] { parse_device("/job:ps/task:"); }, {"'/task:'", "a number"});
  expect_bad_input([] { parse_device("/task:99999999999"); }, {"'/task:99999999999'"});
  expect_bad_input([] { parse_device("/tpu:0"); }, {"cannot read '/tpu:0'"});
  expect_bad_input([] { parse_device("/cpu"); }, {"cannot read '/cpu'"});
  expect_bad_input([] { parse_device("/device:cpu"); }, {"cannot read '/device:cpu'"});
  expect_bad_input([] { parse_device("/job:ps//cpu:0"); }, {"/job:ps//cpu:0", "cannot read '/'"});
  expect_bad_input([] { parse_device("/job:ps/job:worker"); }, {"job is given twice"});
  expect_bad_input([] { parse_device("/cpu:0/device:GPU:0"); }, {"cpu or gpu is given twice"});
  expect_bad_input([] { parse_device("/job:ps/replica:1"); }, {"'/replica:1' does not exist"});
}

class DeviceScopes : public ::testing::Test {
 protected:
  std::string device_of_new_variable() {
    const Tensor added = variable(graph_, {1}, op::Initializer::constant(0));
    return to_string(graph_.node(added).as<op::Variable>()->device);
  }
  Graph graph_;
};

TEST_F(DeviceScopes, CoverTheVariablesAddedInThem) {
  EXPECT_EQ(device_of_new_variable(), "");
  {
    const Graph::DeviceScope scope(graph_, "/job:ps/task:1");
    EXPECT_EQ(device_of_new_variable(), "/job:ps/task:1");
  }
  EXPECT_EQ(device_of_new_variable(), "");
}

TEST_F(DeviceScopes, NestAndTheInnerPartsWin) {
  const Graph::DeviceScope outer(graph_, "/job:ps/task:1");
  {
    const Graph::DeviceScope inner(graph_, "/task:0/cpu:0");
    EXPECT_EQ(device_of_new_variable(), "/job:ps/task:0/cpu:0");
  }
  EXPECT_EQ(device_of_new_variable(), "/job:ps/task:1");
}

TEST_F(DeviceScopes, AVariablesOwnDeviceWins) {
  const Graph::DeviceScope scope(graph_, "/job:ps/task:1");
  op::Variable own{{1}, op::Initializer::constant(0)};
  own.device = parse_device("/task:2");
  EXPECT_EQ(to_string(graph_.node(graph_.add(own, {})).as<op::Variable>()->device), "/job:ps/task:2");
}

TEST_F(DeviceScopes, ABadStringLeavesTheGraphAsItWas) {
  expect_bad_input([&] { const Graph::DeviceScope scope(graph_, "/job:master"); }, {"unknown job"});
  EXPECT_EQ(device_of_new_variable(), "");
}

}  // namespace
}  // namespace trireme
