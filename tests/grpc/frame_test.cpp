// What the receiving side makes of frames: those that no sender can have written, and parts in any order.
#include "trireme/comm/grpc/frame.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "trireme/comm/grpc/inbox.hpp"

namespace trireme::comm::rpc {
namespace {

class Bytes : public Payload {
 public:
  explicit Bytes(std::string text) : text_(std::move(text)) {}
  std::size_t size() const override { return text_.size(); }
  void copy_to(std::byte* target) const override { std::memcpy(target, text_.data(), text_.size()); }

 private:
  std::string text_;
};

struct Fixture {
  Inbox inbox;
  std::string memory = "....";

  std::shared_ptr<PendingReceive> post() { return inbox.post(1, 5, std::as_writable_bytes(std::span(memory))); }
  bool deliver(std::uint64_t sequence, std::uint64_t offset, const std::string& text, std::uint64_t total = 4) {
    const FrameHeader header{.tag = 5, .sequence = sequence, .total_bytes = total, .offset = offset};
    return inbox.deliver(1, header, std::make_unique<Bytes>(text));
  }
};

TEST(GrpcFrame, IsReadAsItWasWritten) {
  const FrameHeader header{.context = 3, .tag = 1023, .sequence = 7, .total_bytes = 1000, .offset = 900};
  const auto read = decode(encode(header), 100);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->context, 3);
  EXPECT_EQ(read->tag, 1023);
  EXPECT_EQ(read->sequence, 7u);
  EXPECT_EQ(read->total_bytes, 1000u);
  EXPECT_EQ(read->offset, 900u);
}

TEST(GrpcFrame, TheImpossibleIsRefused) {
  const FrameHeader good{.total_bytes = 1000, .offset = 900};
  EXPECT_FALSE(decode(encode(good), 101)) << "more than the message has";
  EXPECT_FALSE(decode(encode(good), 0)) << "nothing of something";
  EXPECT_FALSE(decode(FrameBytes{}, 0)) << "zeros";
  for (const auto& change : std::vector<std::function<void(FrameHeader&)>>{
           [](FrameHeader& header) { header.context = -1; }, [](FrameHeader& header) { header.context = 1 << 30; },
           [](FrameHeader& header) { header.tag = 1024; }, [](FrameHeader& header) { header.tag = -1; },
           [](FrameHeader& header) { header.total_bytes = ~std::uint64_t{0}; },
           [](FrameHeader& header) { header.offset = ~std::uint64_t{0} - 50; },
           [](FrameHeader& header) { header.kind = static_cast<FrameKind>(9); }}) {
    FrameHeader bad = good;
    change(bad);
    EXPECT_FALSE(decode(encode(bad), 100));
  }
}

TEST(GrpcInbox, PartsMayComeBeforeAndAfterTheReceiveInAnyOrder) {
  Fixture fixture;
  EXPECT_TRUE(fixture.deliver(1, 0, "wxyz"));  // of the second message
  EXPECT_TRUE(fixture.deliver(0, 2, "cd"));
  const auto first = fixture.post();
  EXPECT_FALSE(first->is_complete);
  EXPECT_TRUE(fixture.deliver(0, 0, "ab"));
  EXPECT_TRUE(first->is_complete);
  EXPECT_EQ(fixture.memory, "abcd");
  EXPECT_TRUE(fixture.post()->is_complete);
  EXPECT_EQ(fixture.memory, "wxyz");
}

TEST(GrpcInbox, ContradictionsAreRefused) {
  Fixture fixture;
  EXPECT_TRUE(fixture.deliver(0, 0, "ab"));
  EXPECT_FALSE(fixture.deliver(0, 2, "cd", 5)) << "another size";
  EXPECT_FALSE(fixture.deliver(0, 0, "abc")) << "more than there is";
  EXPECT_FALSE(fixture.deliver(std::uint64_t{1} << 60, 0, "abcd")) << "far ahead";
  EXPECT_TRUE(fixture.deliver(0, 2, "cd"));
  EXPECT_TRUE(fixture.post()->is_complete);
  EXPECT_FALSE(fixture.deliver(0, 0, "abcd")) << "a second time";
}

TEST(GrpcInbox, AnotherSizeThanExpectedIsToldAndNotWritten) {
  Fixture fixture;
  const auto receive = fixture.post();
  EXPECT_TRUE(fixture.deliver(0, 0, "abcdef", 6));
  EXPECT_TRUE(receive->is_complete);
  EXPECT_EQ(receive->came_bytes, 6u);
  EXPECT_EQ(fixture.memory, "....");
}

TEST(GrpcInbox, NothingIsWrittenOnceItIsWithdrawnOrClosed) {
  Fixture fixture;
  const auto withdrawn = fixture.post();
  EXPECT_TRUE(fixture.inbox.withdraw(*withdrawn));
  EXPECT_FALSE(fixture.deliver(0, 0, "abcd"));
  const auto second = fixture.post();
  fixture.inbox.close();
  EXPECT_TRUE(fixture.deliver(1, 0, "abcd"));
  EXPECT_FALSE(second->is_complete);
  EXPECT_EQ(fixture.memory, "....");
}

}  // namespace
}  // namespace trireme::comm::rpc
