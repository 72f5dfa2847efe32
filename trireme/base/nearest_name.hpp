// What somebody may have meant who has misspelled a name. Used where an unknown option, command, network or plan is
// refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// The name most like the word, as it is written among the names; empty: none is so much like it that it was meant.
// Case, dashes, underscores and spaces do not count: "ResNet-50" is "resnet50".
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

// What ends the sentence "unknown model 'resnet51'": "; did you mean 'resnet50'?", or "." if nothing is like it.
std::string suggestion(std::string_view word, const std::vector<std::string>& names);

}  // namespace trireme
