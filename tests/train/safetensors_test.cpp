#include "trireme/train/safetensors.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"

namespace trireme::train {
namespace {

std::string message_of(const std::string& path) {
  try {
    SafetensorsFile file(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "";
}

class Safetensors : public testing::Test {
 protected:
  void write(const std::string& header, const std::string& data = "", std::int64_t length = -1) const {
    const auto bytes = static_cast<std::uint64_t>(length < 0 ? std::ssize(header) : length);
    std::ofstream file(path_, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
    file << header << data;
  }
  void expect_refused(const std::string& why) const {
    EXPECT_NE(message_of(path_).find(why), std::string::npos) << message_of(path_);
  }

  testkit::TemporaryFolder folder_;
  const std::string path_ = folder_ / "a.safetensors";
};

TEST_F(Safetensors, AFileGivesBackWhatWasWritten) {
  const HostTensor weights(Shape{2, 3}, std::vector<float>{1, -2, 3.5f, 0, 1e-30f, 7});
  const HostTensor counts(Shape{2}, std::vector<std::int32_t>{-5, 1 << 30});
  const HostTensor scalar(4.0f);
  write_safetensors(path_, {{"b/weights", weights}, {"a \"quoted\"", counts}, {"s", scalar}}, {{"step", "12"}});
  const SafetensorsFile file(path_);
  EXPECT_EQ(file.metadata(), (Metadata{{"step", "12"}}));
  EXPECT_EQ(file.names(), (std::vector<std::string>{"a \"quoted\"", "b/weights", "s"}));
  const HostTensor read = file.read("b/weights");
  EXPECT_EQ(read.shape(), weights.shape());
  EXPECT_EQ(std::memcmp(read.data(), weights.data(), weights.f32().size_bytes()), 0);
  EXPECT_EQ(file.read("a \"quoted\"").i32()[1], 1 << 30);
  EXPECT_EQ(file.type("s").shape.rank(), 0);
  EXPECT_THROW(file.read("c"), Error);
}

// As the format's own documentation has it, written byte by byte.
TEST_F(Safetensors, AFileOfAnotherWriterIsRead) {
  const float value = 2.5f;
  write(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  )",
        std::string(reinterpret_cast<const char*>(&value), 4));
  EXPECT_EQ(SafetensorsFile(path_).read("x").f32()[0], 2.5f);
}

TEST_F(Safetensors, WhatIsNotSuchAFileIsRefusedWithTheReason) {
  std::ofstream(path_) << "short";
  expect_refused("it has 5 bytes");
  write("{}", "", 1 << 20);
  expect_refused("its header would have 1048576 bytes");
  write("{}", "", -2);
  write("not json at all", "");
  expect_refused("its header cannot be read");
  write("[1]");
  expect_refused("its header is not an object");
  write(R"({"x":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})", "12345678");
  expect_refused("F32 and I32 can be read");
  write(R"({"x":{"dtype":"F32","shape":[3],"data_offsets":[0,4]}})", "1234");
  expect_refused("shape and offsets of tensor 'x' do not agree");
  write(R"({"x":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})");
  expect_refused("shape and offsets of tensor 'x' do not agree");
  write(R"({"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,-4]}})");
  expect_refused("shape and offsets of tensor 'x' do not agree");
  write(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234");
  expect_refused("the file was truncated");
  write(R"({"x":{"dtype":"F32","shape":"two","data_offsets":[0,8]}})", "12345678");
  expect_refused("its header cannot be read");
  EXPECT_NE(message_of(folder_ / "none").find("cannot open"), std::string::npos);
  EXPECT_NE(message_of(folder_.path()).find("is not a file"), std::string::npos);
}

TEST_F(Safetensors, WhatCannotBeWrittenLeavesTheOldFile) {
  std::ofstream(path_) << "old";
  EXPECT_THROW(write_safetensors(folder_ / "no/where", {}, {}), Error);
  std::string text;
  std::ifstream(path_) >> text;
  EXPECT_EQ(text, "old");
}

}  // namespace
}  // namespace trireme::train
