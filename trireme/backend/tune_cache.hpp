// Measured kernel times, kept in a file so that a second start costs nothing. Processes may share it: save() merges
// what others wrote and renames a new file over it, under a lock. An unreadable file counts as empty.
#pragma once

#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace trireme {

class TuneCache {
 public:
  // An empty path keeps everything in memory.
  explicit TuneCache(std::string path = "");

  // Seconds of a kernel on a problem, which names all that matters: shapes, layouts, threads, CPU, library version.
  std::optional<double> find(const std::string& problem, const std::string& kernel) const;
  std::optional<std::string> fastest(const std::string& problem) const;
  // spent: seconds that measuring took.
  void add(const std::string& problem, const std::string& kernel, double seconds, double spent = 0);
  // Writes new entries. Error(failed) if the file cannot be written.
  void save();
  // All entries in the file's format, for another process to merge().
  std::string text() const;
  void merge(const std::string& text);

  const std::string& path() const { return path_; }
  // By this process, and the seconds it spent measuring.
  int added() const;
  double seconds_spent() const;
  // In XDG_CACHE_HOME or ~/.cache; empty if there is neither.
  static std::string default_path();

 private:
  using Entries = std::map<std::string, std::map<std::string, double>>;
  static Entries parse(const nlohmann::json& json);
  Entries read() const;
  void write(const Entries& entries) const;

  std::string path_;
  mutable std::mutex mutex_;
  Entries entries_;
  bool changed_ = false;
  int added_ = 0;
  double seconds_spent_ = 0;
};

}  // namespace trireme
