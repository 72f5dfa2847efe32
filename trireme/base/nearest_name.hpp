// Suggestions for misspelled options, commands, networks and plans.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// The most similar name, or empty. Ignores case, dashes, underscores and spaces: "ResNet-50" is "resnet50".
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

// Completes "unknown model 'resnet51'": "; did you mean 'resnet50'?", or "." if nothing is similar.
std::string suggestion(std::string_view word, const std::vector<std::string>& names);

}  // namespace trireme
