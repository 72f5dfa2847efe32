// A table of plain text with aligned columns: what `models`, `doctor` and the profile of `bench` print. Rows are added
// as text, formatted by the caller; text() is made once at the end, when all widths are known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::report {

enum class Align : std::uint8_t { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // One cell per column; another number is a mistake of the caller and throws std::invalid_argument.
  void add_row(std::vector<std::string> cells);
  // A line across the table, before a row of totals.
  void add_rule();

  // Titles, a rule, the rows; two spaces between columns, no trailing spaces, a newline after every line.
  // With all titles empty the head is left out.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace trireme::report
