// classes.txt: the names of the classes of a data set, one per line in the order of their labels. May lie beside data
// of any format; our writers put it there where names are known.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace trireme::data {

inline constexpr const char* kClassNamesFile = "classes.txt";

// Names of a file with one per line; empty lines at the end do not count. Error(bad_input) where a name is empty or
// comes twice.
std::vector<std::string> read_class_names(const std::string& path);
// Of classes.txt in a folder; none where there is no such file.
std::vector<std::string> class_names_in(const std::string& folder);
void write_class_names(const std::string& folder, const std::vector<std::string>& names);

// What samples call their classes themselves, by label (image/class/text of TFRecords). Of several texts for one label
// the first in the alphabet is kept, in whatever order they come.
using ClassTexts = std::map<std::int32_t, std::string>;
void add_text(ClassTexts& texts, std::int32_t label, const std::string& text);
// Names by label from these, where a label may have no name,
// two may have the same, and a name may be anything: each label has one of its own, its number if need be. None where
// all that samples say is the number.
std::vector<std::string> names_from_texts(const ClassTexts& texts, std::int32_t classes);

// The number of a class as a name, with as many digits as the largest, so that names sort as numbers do.
std::string numbered_class(int label, int classes);

}  // namespace trireme::data
