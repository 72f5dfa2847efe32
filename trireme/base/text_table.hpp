// A plain-text table with aligned columns, for `models`, `doctor` and the profile of `bench`. The caller adds rows of
// formatted text; text() lays them out at the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trireme {

enum class Align : std::uint8_t { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns);

  void add_row(std::vector<std::string> cells);  // std::invalid_argument unless one per column
  void add_rule();                               // across the table, before totals

  // Titles, a rule, the rows; two spaces between columns, no trailing spaces. No head if all titles are empty.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace trireme
