// classes.txt: class names of a data set, one per line in label order. Optional for any format; our writers add it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace trireme::data {

inline constexpr const char* kClassNamesFile = "classes.txt";

// One name per line; ignores empty lines at the end. Error(bad_input) if a name is empty or repeated.
std::vector<std::string> read_class_names(const std::string& path);
std::vector<std::string> class_names_in(const std::string& folder);  // empty without classes.txt
void write_class_names(const std::string& folder, const std::vector<std::string>& names);

// The samples' own class texts by label (image/class/text of TFRecords). Of several texts for one label the
// alphabetically first is kept, whatever their order.
using ClassTexts = std::map<std::int32_t, std::string>;
void add_text(ClassTexts& texts, std::int32_t label, const std::string& text);
// Class names from these texts, which may be missing, repeated or arbitrary: each label gets a unique name, its number
// if need be. Empty if the texts are only the numbers.
std::vector<std::string> names_from_texts(const ClassTexts& texts, std::int32_t classes);

std::string numbered_class(int label, int classes);  // zero-padded, so that names sort like numbers

}  // namespace trireme::data
