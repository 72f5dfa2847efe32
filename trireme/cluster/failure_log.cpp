#include "trireme/cluster/failure_log.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace trireme::cluster {
namespace {

constexpr std::size_t kShownOthers = 3, kShownCharacters = 160;

std::string shortened(const std::string& text) {
  return text.size() <= kShownCharacters ? text : text.substr(0, kShownCharacters) + "...";
}

}  // namespace

void FailureLog::add(Failure failure) {
  const bool known = std::any_of(failures_.begin(), failures_.end(),
                                 [&](const Failure& other) { return failure.task >= 0 && other.task == failure.task; });
  if (!known) failures_.push_back(std::move(failure));
}

void FailureLog::settle() {
  const auto first = std::max_element(failures_.begin(), failures_.end(),
                                      [](const Failure& a, const Failure& b) { return a.cause < b.cause; });
  first_ = static_cast<std::size_t>(first - failures_.begin());
}

std::vector<std::string> FailureLog::others() const {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < failures_.size(); ++i) {
    const Failure& failure = failures_[i];
    if (i == first_ || failure.cause != Cause::error || failure.what == first().what) continue;
    texts.push_back(failure.who + shortened(failure.what));
  }
  if (texts.size() > kShownOthers) {
    const std::size_t more = texts.size() - kShownOthers;
    texts.resize(kShownOthers);
    texts.push_back(fmt::format("and {} more", more));
  }
  return texts;
}

}  // namespace trireme::cluster
