// Expects that an action throws Error(bad_input) with a message that holds certain parts. For tests of bad input.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "trireme/base/error.hpp"

namespace trireme::testkit {

template <typename Action>
void expect_bad_input(Action&& action, std::initializer_list<std::string_view> parts) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    const std::string message = error.what();
    for (const std::string_view part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << "message: " << message << "\nlacks: " << part;
    }
    return;
  }
  ADD_FAILURE() << "no error; expected one with: " << *parts.begin();
}

}  // namespace trireme::testkit
