#include "trireme/base/text_table.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace trireme {
namespace {

TEST(TextTable, AlignsColumnsToTheWidestCell) {
  TextTable table({{"name"}, {"count", Align::right}});
  table.add_row({"a", "1"});
  table.add_row({"longer", "1,234,567"});
  EXPECT_EQ(table.text(),
            "name        count\n"
            "------  ---------\n"
            "a               1\n"
            "longer  1,234,567\n");
}

TEST(TextTable, LeavesNoTrailingSpaces) {
  TextTable table({{"a"}, {"wide column"}});
  table.add_row({"x", ""});
  EXPECT_EQ(table.text(), "a  wide column\n-  -----------\nx\n");
}

TEST(TextTable, RuleStandsBeforeTotals) {
  TextTable table({{"n", Align::right}});
  table.add_row({"10"});
  table.add_rule();
  table.add_row({"10"});
  EXPECT_EQ(table.text(), " n\n--\n10\n--\n10\n");
}

TEST(TextTable, WithoutTitlesThereIsNoHead) {
  TextTable table({{""}, {""}});
  table.add_row({"key", "value"});
  EXPECT_EQ(table.text(), "key  value\n");
}

TEST(TextTable, CountsCharactersNotBytes) {
  TextTable table({{""}, {""}});
  table.add_row({"\xC2\xB5s", "x"});  // µs: three bytes, two characters
  table.add_row({"ab", "y"});
  EXPECT_EQ(table.text(), "\xC2\xB5s  x\nab  y\n");
}

TEST(TextTable, RefusesRowsOfAnotherLength) {
  TextTable table({{"a"}, {"b"}});
  EXPECT_THROW(table.add_row({"only one"}), std::invalid_argument);
  EXPECT_THROW(table.add_row({}), std::invalid_argument);
  EXPECT_THROW(TextTable({}), std::invalid_argument);
}

}  // namespace
}  // namespace trireme
