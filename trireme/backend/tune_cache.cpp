#include "trireme/backend/tune_cache.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
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

// Raise it when the meaning of problems or kernels changes; old files then stay untouched under their own name.
constexpr int kVersion = 2;

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

TuneCache::TuneCache(std::string path) : path_(std::move(path)) { entries_ = read(); }

std::string TuneCache::default_path() { return cache_path(fmt::format("tune-v{}.json", kVersion)); }

std::optional<double> TuneCache::find(const std::string& problem, const std::string& kernel) const {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(problem);
  if (entry == entries_.end()) return std::nullopt;
  const auto seconds = entry->second.find(kernel);
  return seconds == entry->second.end() ? std::nullopt : std::optional(seconds->second);
}

std::optional<std::string> TuneCache::fastest(const std::string& problem) const {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(problem);
  if (entry == entries_.end() || entry->second.empty()) return std::nullopt;
  return std::min_element(entry->second.begin(), entry->second.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

void TuneCache::add(const std::string& problem, const std::string& kernel, double seconds, double spent) {
  const std::lock_guard lock(mutex_);
  entries_[problem][kernel] = seconds;
  changed_ = true;
  ++added_;
  seconds_spent_ += spent;
}

std::string TuneCache::text() const {
  const std::lock_guard lock(mutex_);
  return nlohmann::json{{"version", kVersion}, {"entries", entries_}}.dump();
}

void TuneCache::merge(const std::string& text) {
  const Entries others = parse(nlohmann::json::parse(text, nullptr, false));
  const std::lock_guard lock(mutex_);
  for (const auto& [problem, kernels] : others) {
    for (const auto& [kernel, seconds] : kernels) entries_[problem][kernel] = seconds;
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
  for (const auto& [problem, kernels] : json["entries"].items()) {
    if (!kernels.is_object()) continue;
    for (const auto& [kernel, seconds] : kernels.items()) {
      if (seconds.is_number() && seconds.get<double>() > 0) entries[problem][kernel] = seconds.get<double>();
    }
  }
  return entries;
}

void TuneCache::write(const Entries& entries) const {
  NewFile file(path_);
  file.write(nlohmann::json{{"version", kVersion}, {"entries", entries}}.dump(1) + "\n");
  file.commit_unsynced();  // times can be measured again
}

int TuneCache::added() const {
  const std::lock_guard lock(mutex_);
  return added_;
}

double TuneCache::seconds_spent() const {
  const std::lock_guard lock(mutex_);
  return seconds_spent_;
}

void TuneCache::save() {
  const std::lock_guard lock(mutex_);
  if (path_.empty() || !changed_) return;
  std::error_code error;
  const auto folder = std::filesystem::path(path_).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error)
    fail(ErrorKind::failed, "cannot make the folder '{}' of the tune cache: {}", folder.string(), error.message());
  const UniqueFd held = locked(path_ + ".lock");
  // What others saved meanwhile stays; if both have an entry, ours is newer.
  Entries merged = read();
  for (const auto& [problem, kernels] : entries_) {
    for (const auto& [kernel, seconds] : kernels) merged[problem][kernel] = seconds;
  }
  write(merged);
  entries_ = std::move(merged);
  changed_ = false;
}

}  // namespace trireme
