#include "trireme/comm/clock_offset.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <span>

#include "trireme/base/clock.hpp"

namespace trireme::comm {
namespace {

constexpr std::size_t kQuestions = 40;
constexpr std::size_t kFastest = 9;  // round trips whose median counts

}  // namespace

ClockOffset measure_clock_offset(Communicator& communicator, int other, int tag) {
  std::array<ClockOffset, kQuestions> answers;
  for (ClockOffset& answer : answers) {
    const std::int64_t asked = steady_nanoseconds();
    communicator.send({}, other, tag);
    communicator.receive(std::as_writable_bytes(std::span(&answer.at, 1)), other, tag);
    const std::int64_t answered = steady_nanoseconds();
    answer.round_trip = answered - asked;
    answer.offset = answer.at - (asked + answer.round_trip / 2);
  }
  std::sort(answers.begin(), answers.end(),
            [](const ClockOffset& a, const ClockOffset& b) { return a.round_trip < b.round_trip; });
  const auto middle = answers.begin() + kFastest / 2;
  std::nth_element(answers.begin(), middle, answers.begin() + kFastest,
                   [](const ClockOffset& a, const ClockOffset& b) { return a.offset < b.offset; });
  return *middle;
}

void answer_clock_questions(Communicator& communicator, int asker, int tag) {
  for (std::size_t i = 0; i < kQuestions; ++i) {
    communicator.receive({}, asker, tag);
    const std::int64_t time = steady_nanoseconds();
    communicator.send(std::as_bytes(std::span(&time, 1)), asker, tag);
  }
}

std::int64_t to_own_clock(std::int64_t theirs, const ClockOffset& begin, const ClockOffset& end) {
  const auto between = static_cast<double>(end.at - begin.at);
  const double share = between > 0 ? static_cast<double>(theirs - begin.at) / between : 0;
  return theirs - begin.offset - std::llround(share * static_cast<double>(end.offset - begin.offset));
}

}  // namespace trireme::comm
