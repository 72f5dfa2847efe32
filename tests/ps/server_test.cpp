// A server against workers that speak the protocol by hand, among them some that do not keep to it.
#include "trireme/ps/server.hpp"

#include <gtest/gtest.h>

#include "trireme/base/error.hpp"
#include "trireme/comm/backoff.hpp"
#include "trireme/comm/local/run_local.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme::ps {
namespace {

constexpr int kServer = 2;  // after two workers

Setup one_chunk(Mode mode) {
  Setup setup;
  setup.workers = 2;
  setup.mode = mode;
  setup.timeout_seconds = 0.5;
  setup.chunks = {{.name = "w", .elements = 4, .priority = 0, .rule = {.kind = op::OptimizerKind::sgd}}};
  return setup;
}

class HandWorker {
 public:
  HandWorker(comm::Communicator& all, const Setup& setup) : all_(all), inbox_(all, kServer), outbox_(all, kServer) {
    send_text(all, to_text(setup), kServer);
    const std::vector<float> initial(4, 1.0f);
    if (all.rank() == 0) all.send(std::as_bytes(std::span(initial)), kServer, kElementsTag);
  }

  void say(const Header& header, std::span<const float> gradients = {}) {
    outbox_.add(0, header, std::as_bytes(gradients));
    while (!outbox_.empty()) wait([this] { return outbox_.progress(); });
  }
  void push(float gradient, std::uint64_t version) {
    const std::vector<float> gradients(4, gradient);
    say({.kind = Kind::push, .chunk = 0, .version = version, .learning_rate = 1}, gradients);
  }
  // The next answer: its header, and its values into values().
  Header answer() {
    MessageReceiver::State state = MessageReceiver::State::waiting;
    wait([&] { return (state = inbox_.progress()) != MessageReceiver::State::waiting; });
    const Header header = inbox_.header();
    text_.resize(header.kind == Kind::failed || header.kind == Kind::text ? header.chunk : 0);
    inbox_.expect(header.kind == Kind::value ? std::as_writable_bytes(std::span(values_))
                                             : std::as_writable_bytes(std::span(text_)));
    wait([&] { return inbox_.progress() == MessageReceiver::State::elements; });
    inbox_.next();
    return header;
  }
  float value() const { return values_[0]; }
  const std::string& text() const { return text_; }

 private:
  void wait(const std::function<bool()>& moved) {
    comm::Backoff backoff;
    while (!moved()) {
      if (backoff.waited().count() > 20) fail(ErrorKind::failed, "no answer");
      all_.doze(backoff);
    }
  }

  comm::Communicator& all_;
  MessageReceiver inbox_;
  MessageSender outbox_;
  std::array<float, 4> values_{};
  std::string text_;
};

class Misbehaving : public testing::TestWithParam<std::pair<const char*, Header>> {};

TEST_P(Misbehaving, AWorkerIsLeftOutAndChangesNothing) {
  const Header nonsense = GetParam().second;
  std::vector<std::string> log;
  comm::run_local(3, [&](comm::Communicator& all) {
    if (all.rank() == kServer) {
      const auto keep = [&log](std::string line) { log.push_back(std::move(line)); };
      return Server(all, 2, {.threads = 1, .start_thread = {}, .log = keep}).run();
    }
    HandWorker worker(all, one_chunk(Mode::asynchronous));
    if (all.rank() == 1) return worker.say(nonsense);
    for (int i = 0; i < 3; ++i) {
      worker.push(0.5f, static_cast<std::uint64_t>(i));
      EXPECT_EQ(worker.answer().version, static_cast<std::uint64_t>(i + 1));
      EXPECT_FLOAT_EQ(worker.value(), 1 - 0.5f * static_cast<float>(i + 1));
    }
    worker.say({.kind = Kind::leave});
  });
  ASSERT_EQ(log.size(), 1U);
  EXPECT_NE(log[0].find("lost worker 1"), std::string::npos) << log[0];
}

INSTANTIATE_TEST_SUITE_P(Headers, Misbehaving,
                         testing::Values(std::pair{"chunk", Header{.kind = Kind::push, .chunk = 7}},
                                         std::pair{"version", Header{.kind = Kind::push, .chunk = 0, .version = 1000}},
                                         std::pair{"kind", Header{.kind = static_cast<Kind>(4711)}},
                                         std::pair{"direction", Header{.kind = Kind::value}}),
                         [](const auto& instance) { return instance.param.first; });

TEST(Server, TwoGradientsOfOneStepAreRefused) {
  std::vector<std::string> log;
  comm::run_local(3, [&](comm::Communicator& all) {
    if (all.rank() == kServer) {
      const auto keep = [&log](std::string line) { log.push_back(std::move(line)); };
      return Server(all, 2, {.threads = 1, .start_thread = {}, .log = keep}).run();
    }
    ps::Setup bounded = one_chunk(Mode::asynchronous);
    bounded.staleness = 0;  // worker 1 is one step ahead then, and gets no answer
    bounded.timeout_seconds = 20;
    HandWorker worker(all, bounded);
    if (all.rank() == 1) {
      worker.push(1, 0);
      return worker.push(1, 0);
    }
    worker.push(1, 0);
    worker.answer();
    worker.say({.kind = Kind::leave});
  });
  ASSERT_FALSE(log.empty());
  EXPECT_NE(log[0].find("twice in one step"), std::string::npos) << log[0];
}

TEST(Server, SaysWhomItWaitedForInVainAndWhyItEnds) {
  std::string told, thrown;
  comm::run_local(3, [&](comm::Communicator& all) {
    if (all.rank() == kServer) {
      try {
        Server(all, 2).run();
      } catch (const Error& error) {  // kept here: the other threads would be ended by it before they have read
        thrown = error.what();
      }
      return;
    }
    HandWorker worker(all, one_chunk(Mode::synchronous));
    if (all.rank() == 1) return;  // never pushes
    worker.push(1, 0);
    EXPECT_EQ(worker.answer().kind, Kind::failed);
    told = worker.text();
  });
  EXPECT_NE(thrown.find("did not send gradients of 'w'"), std::string::npos) << thrown;
  EXPECT_NE(thrown.find("worker 1"), std::string::npos) << thrown;
  EXPECT_EQ(told, thrown);
}

TEST(Server, WorkersThatTrainDifferentThingsAreRefused) {
  try {
    comm::run_local(3, [](comm::Communicator& all) {
      if (all.rank() == kServer) return Server(all, 2).run();
      ps::Setup setup = one_chunk(Mode::synchronous);
      setup.chunks[0].elements += all.rank();
      send_text(all, to_text(setup), kServer);
    });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("train different models"), std::string::npos) << error.what();
  }
}

TEST(Server, ASetupThatIsNoneIsRefused) {
  EXPECT_THROW(setup_from_text("{}"), Error);
  EXPECT_THROW(setup_from_text("no JSON"), Error);
  ps::Setup setup = one_chunk(Mode::synchronous);
  for (const op::OptimizerInfo& info : op::kOptimizers) {
    const op::OptimizerRule rule = setup.chunks[0].rule = optimizer_rule(info.kind, 0.25f);
    EXPECT_EQ(setup_from_text(to_text(setup)).chunks[0].rule, rule);
  }
  std::string text = to_text(setup);
  text.replace(text.find("lion"), 4, "luck");
  EXPECT_THROW(setup_from_text(text), Error);
}

}  // namespace
}  // namespace trireme::ps
