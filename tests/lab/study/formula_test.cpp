#include "trireme/lab/study/formula.hpp"

#include <gtest/gtest.h>

#include "trireme/base/error.hpp"

namespace trireme::lab {
namespace {

FormulaValue lookup(const std::string& name) {
  if (name == "workers") return 4.0;
  if (name == "num-intra-threads") return 2.0;
  if (name == "model") return std::string("resnet50");
  if (name == "forward-only") return true;
  bad_input("there is no '{}'", name);
}

double number(const std::string& text) { return Formula(text, "here").number(lookup); }
bool holds(const std::string& text) { return Formula(text, "here").holds(lookup); }

// Of parsing and of evaluating alike.
std::string error_of(const std::string& text) {
  try {
    Formula(text, "here").evaluate(lookup);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  ADD_FAILURE() << text << " is no error";
  return "";
}

TEST(Formula, Arithmetic) {
  EXPECT_EQ(number("1 + 2 * 3"), 7);
  EXPECT_EQ(number("(1 + 2) * 3"), 9);
  EXPECT_EQ(number("7 % 4 - 10 / 4"), 0.5);
  EXPECT_EQ(number("10 - 3 - 2"), 5) << "from the left";
  EXPECT_EQ(number("-2 * -3"), 6);
  EXPECT_EQ(number(".5 + 1.25"), 1.75);
}

TEST(Formula, NamesMayHaveDashesAndMinusNeedsSpacesBetweenThem) {
  EXPECT_EQ(number("workers * num-intra-threads"), 8);
  EXPECT_EQ(number("workers - num_intra_threads"), 2);
  EXPECT_EQ(number("workers-1"), 3);
}

TEST(Formula, Conditions) {
  EXPECT_TRUE(holds("workers * num-intra-threads <= 8"));
  EXPECT_FALSE(holds("workers * num-intra-threads < 8"));
  EXPECT_TRUE(holds("workers >= 4 and workers != 5"));
  EXPECT_TRUE(holds("workers > 4 or model == 'resnet50'"));
  EXPECT_TRUE(holds("not model == \"vgg11\""));
  EXPECT_TRUE(holds("forward-only == true and not false"));
  EXPECT_TRUE(holds("1 == 1 or 1 == 1 and 1 == 2")) << "and binds closer than or";
  EXPECT_TRUE(holds("workers == 4 or nothing == 1")) << "what does not matter is not asked for";
}

TEST(Formula, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(error_of("workers <="), "here: 'workers <=': a number, a name or a quoted text is missing at the end");
  EXPECT_EQ(error_of("workers 4"), "here: 'workers 4': an operator is expected at character 9, not '4'");
  EXPECT_EQ(error_of("(1 + 2"), "here: '(1 + 2': ')' is missing at the end");
  EXPECT_EQ(error_of("ps <= 2"), "here: 'ps <= 2': there is no 'ps'");
  EXPECT_EQ(error_of("model + 1"), "here: 'model + 1': + takes numbers, and 'resnet50' is not a number");
  EXPECT_EQ(error_of("1 / (workers - 4)"), "here: '1 / (workers - 4)': 1 / 0: division by zero");
  EXPECT_EQ(error_of("model == 4"),
            "here: 'model == 4': 'resnet50' and 4 are of different kinds and cannot be compared");
  EXPECT_NE(error_of("workers = 4").find("'=' at character 9 has no meaning here"), std::string::npos);
  EXPECT_NE(error_of("model == 'x").find("the quote at character 10 is not closed"), std::string::npos);
  EXPECT_NE(error_of("1 < 2 < 3").find("comparisons do not chain"), std::string::npos);
  EXPECT_NE(error_of("1 and 2 == 2").find("and takes conditions"), std::string::npos);
  EXPECT_NE(error_of("1.2.3").find("'1.2.3' is not a number"), std::string::npos);
  EXPECT_NE(error_of("and").find("a number, a name or a quoted text is expected"), std::string::npos);
  EXPECT_NE(error_of("").find("is missing at the end"), std::string::npos);
}

TEST(Formula, WrongCharactersAreNamedAsAWhole) {
  EXPECT_NE(error_of("'ü' == 'ü' × 2").find("'×' at character 12 has no meaning here"), std::string::npos)
      << error_of("'ü' == 'ü' × 2");
  EXPECT_THROW(number(std::string("1 \0 2", 5)), Error) << "no end before the end";
}

TEST(Formula, NumbersThatAreTooLargeAreRefused) {
  std::string power = "10";
  for (int i = 0; i < 400; ++i) power += "*10";
  EXPECT_NE(error_of(power).find(" * 10 is too large"), std::string::npos);
  EXPECT_NE(error_of("0 * (" + power + ")").find("too large"), std::string::npos);
}

TEST(Formula, MayNotBeDeepOrLong) {
  const auto repeated = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  EXPECT_EQ(number(repeated("(", 40) + "1" + repeated(")", 40)), 1);
  EXPECT_EQ(number("0" + repeated(" + 1", 400)), 400);
  for (const std::string& deep :
       {repeated("(", 1000) + "1" + repeated(")", 999), repeated("-", 1999) + "1", repeated("not ", 400) + "true"}) {
    EXPECT_NE(error_of(deep).find("it is nested more than 50 deep"), std::string::npos);
  }
  EXPECT_EQ(error_of(repeated("(", 200'000)), "here: has 200000 characters; at most 2000 are allowed");
}

TEST(Formula, AConditionIsNoNumberAndTheOtherWayRound) {
  EXPECT_THROW(number("1 < 2"), Error);
  EXPECT_THROW(holds("1 + 2"), Error);
}

}  // namespace
}  // namespace trireme::lab
