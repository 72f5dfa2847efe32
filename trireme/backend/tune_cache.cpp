#include "trireme/backend/tune_cache.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/base/unique_fd.hpp"

namespace trireme {
namespace {

// Raised when the meaning of problems or kernels changes: old files are then left alone under their own name.
constexpr int kVersion = 3;

// Held while the file is merged and replaced. A separate file, because the cache itself is renamed over.
UniqueFd locked(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644));
  if (!file.is_open())
    fail(ErrorKind::failed, "cannot write the tune cache's lock '{}': {}", path, std::strerror(errno));
  while (flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return file;
}

}  // namespace

TuneCache::Conditions TuneCache::today(double load) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {.day = std::chrono::duration_cast<std::chrono::hours>(now).count() / 24, .load = load};
}

TuneCache::TuneCache(std::string path, const Conditions& now) : path_(std::move(path)), now_(now) { entries_ = read(); }

// Timings of one problem are compared with each other, so they are kept or taken again together.
bool TuneCache::is_good(const Timings& timings) const {
  const bool suffered = timings.taken.is_busy() && now_.load < timings.taken.load / 2;
  return !suffered && now_.day - timings.taken.day <= perf::kDaysTrusted;
}

const TuneCache::Timings* TuneCache::good(const std::string& problem) const {
  const auto entry = entries_.find(problem);
  if (entry == entries_.end() || !is_good(entry->second)) return nullptr;
  found_.insert(problem);
  return &entry->second;
}

std::string TuneCache::default_path() { return cache_path(fmt::format("tune-v{}.json", kVersion)); }

std::optional<double> TuneCache::find(const std::string& problem, const std::string& kernel) const {
  const std::lock_guard lock(mutex_);
  const Timings* timings = good(problem);
  if (timings == nullptr) return std::nullopt;
  const auto seconds = timings->seconds.find(kernel);
  return seconds == timings->seconds.end() ? std::nullopt : std::optional(seconds->second);
}

std::optional<std::string> TuneCache::fastest(const std::string& problem) const {
  const std::lock_guard lock(mutex_);
  const Timings* timings = good(problem);
  if (timings == nullptr || timings->seconds.empty()) return std::nullopt;
  return std::ranges::min_element(timings->seconds, {}, [](const auto& entry) { return entry.second; })->first;
}

void TuneCache::add(const std::string& problem, const std::string& kernel, double seconds, double spent) {
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = entries_.try_emplace(problem);
  Timings& timings = entry->second;
  if (!is_new && !is_good(timings)) {
    timings.seconds.clear();
    ++renewed_;
  }
  if (timings.seconds.empty()) timings.taken = now_;
  timings.seconds[kernel] = seconds;
  changed_.insert(problem);
  ++added_;
  seconds_spent_ += spent;
}

std::string TuneCache::text() const {
  const std::lock_guard lock(mutex_);
  Entries found = entries_;
  std::erase_if(found, [this](const auto& entry) { return !is_good(entry.second); });
  return text_of(found, -1);
}

std::string TuneCache::text_of(const Entries& entries, int indent) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [problem, timings] : entries) {
    json[problem] = {{"seconds", timings.seconds}, {"day", timings.taken.day}, {"load", timings.taken.load}};
  }
  return nlohmann::json{{"version", kVersion}, {"entries", std::move(json)}}.dump(indent);
}

void TuneCache::merge(const std::string& text) {
  Entries others = parse(nlohmann::json::parse(text, nullptr, false));
  const std::lock_guard lock(mutex_);
  for (auto& [problem, timings] : others) {
    timings.taken = now_;
    entries_[problem] = std::move(timings);
  }
}

TuneCache::Entries TuneCache::read() const {
  if (path_.empty()) return {};
  std::ifstream file(path_);
  return parse(nlohmann::json::parse(file, nullptr, false));
}

TuneCache::Entries TuneCache::parse(const nlohmann::json& json) {
  Entries entries;
  if (!json.is_object() || json.value("version", nlohmann::json()) != kVersion || !json.contains("entries"))
    return entries;
  for (const auto& [problem, entry] : json["entries"].items()) {
    if (!entry.is_object() || !entry.contains("seconds") || !entry["seconds"].is_object()) continue;
    if (!entry.value("day", nlohmann::json()).is_number() || !entry.value("load", nlohmann::json()).is_number())
      continue;
    Timings& timings = entries[problem];
    timings.taken = {.day = entry["day"].get<std::int64_t>(), .load = entry["load"].get<double>()};
    for (const auto& [kernel, seconds] : entry["seconds"].items()) {
      if (seconds.is_number() && seconds.get<double>() > 0) timings.seconds[kernel] = seconds.get<double>();
    }
  }
  return entries;
}

int TuneCache::added() const {
  const std::lock_guard lock(mutex_);
  return added_;
}

int TuneCache::renewed() const {
  const std::lock_guard lock(mutex_);
  return renewed_;
}

double TuneCache::seconds_spent() const {
  const std::lock_guard lock(mutex_);
  return seconds_spent_;
}

void TuneCache::doubt() {
  const std::lock_guard lock(mutex_);
  doubted_ = found_;
}

void TuneCache::save() {
  const std::lock_guard lock(mutex_);
  if (path_.empty() || (changed_.empty() && doubted_.empty())) return;
  std::error_code error;
  const auto folder = std::filesystem::path(path_).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error)
    fail(ErrorKind::failed, "cannot make the folder '{}' of the tune cache: {}", folder.string(), error.message());
  const UniqueFd held = locked(path_ + ".lock");
  // What others have measured meanwhile stays, unless ours is as new.
  Entries merged = read();
  const auto is_newer = [this](const Timings& theirs, const std::string& problem) {
    return theirs.taken.day > entries_[problem].taken.day && is_good(theirs);
  };
  for (const std::string& problem : changed_) {
    Timings& timings = merged[problem];
    if (is_newer(timings, problem)) continue;
    if (!is_good(timings)) timings.seconds.clear();
    timings.taken = entries_[problem].taken;
    for (const auto& [kernel, seconds] : entries_[problem].seconds) timings.seconds[kernel] = seconds;
  }
  std::erase_if(merged, [&](const auto& entry) {
    return doubted_.contains(entry.first) && !is_newer(entry.second, entry.first);
  });
  NewFile file(path_);
  file.write(text_of(merged, 1) + "\n");
  file.commit_unsynced();  // times can be taken again
  entries_ = std::move(merged);
  changed_.clear();
  doubted_.clear();
}

}  // namespace trireme
