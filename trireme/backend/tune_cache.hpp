// Times that kernels were measured to take, kept in a file so that the second start costs nothing. Several processes
// may use one file: it is read once, and written aside, merged with what others have saved meanwhile, and renamed,
// under a lock. A file that cannot be read counts as empty.
#pragma once

#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace trireme {

class TuneCache {
 public:
  // An empty path keeps everything in memory only.
  explicit TuneCache(std::string path = "");

  // Seconds of a kernel on a problem. Both are texts; a problem says all that matters: shapes, layouts, threads, CPU,
  // version of the library.
  std::optional<double> find(const std::string& problem, const std::string& kernel) const;
  // The fastest kernel of those known for a problem.
  std::optional<std::string> fastest(const std::string& problem) const;
  // spent: what measuring took in all.
  void add(const std::string& problem, const std::string& kernel, double seconds, double spent = 0);
  // Writes what is new. Error(failed) if the file cannot be written.
  void save();
  // All entries as the text of a file, for another process, which takes them over with merge().
  std::string text() const;
  void merge(const std::string& text);

  const std::string& path() const { return path_; }
  // What was added by this process: how many times, and what measuring them took.
  int added() const;
  double seconds_spent() const;
  // Below XDG_CACHE_HOME or ~/.cache; empty if there is neither.
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
