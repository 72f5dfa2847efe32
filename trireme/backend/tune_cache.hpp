// Kernel timings, kept in a file so that the second start costs nothing. Timings that are old, or were taken on a
// machine busier than now, are not found and so are taken again. Several processes may use one file: it is read once,
// merged with what others have saved, of which the newer counts, and replaced, under a lock. A file that cannot be read
// counts as empty.
#pragma once

#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

#include "trireme/perf/machine.hpp"

namespace trireme {

class TuneCache {
 public:
  // What timings are taken under.
  struct Conditions {
    std::int64_t day = 0;  // since 1970
    double load = 0;       // threads of other programs, per core
    bool is_busy() const { return load > perf::kBusyLoad; }
  };
  static Conditions today(double load = 0);

  // An empty path keeps everything in memory only.
  explicit TuneCache(std::string path = "", const Conditions& now = today());

  // Seconds of a kernel on a problem, which names all that matters: shapes, layouts, threads, CPU, library version.
  std::optional<double> find(const std::string& problem, const std::string& kernel) const;
  std::optional<std::string> fastest(const std::string& problem) const;
  // spent: seconds that measuring took.
  void add(const std::string& problem, const std::string& kernel, double seconds, double spent = 0);
  // The steps contradict the timings that were found here: save() removes them, so the next process takes them again.
  void doubt();
  // Writes what is new. Error(failed) if the file cannot be written.
  void save();
  // What is found here, as the text of a file, for another process: after merge() it finds the same, whatever its own
  // conditions, so that all choose alike.
  std::string text() const;
  void merge(const std::string& text);

  const std::string& path() const { return path_; }
  const Conditions& now() const { return now_; }
  // By this process, and the seconds it spent measuring.
  int added() const;
  int renewed() const;  // problems among these whose timings were too old or doubtful
  double seconds_spent() const;
  // In XDG_CACHE_HOME or ~/.cache; empty if there is neither.
  static std::string default_path();

 private:
  struct Timings {
    std::map<std::string, double> seconds;  // by kernel
    Conditions taken;
  };
  using Entries = std::map<std::string, Timings>;  // by problem
  bool is_good(const Timings& timings) const;
  const Timings* good(const std::string& problem) const;
  static Entries parse(const nlohmann::json& json);
  Entries read() const;
  static std::string text_of(const Entries& entries, int indent);

  std::string path_;
  Conditions now_;
  mutable std::mutex mutex_;
  Entries entries_;
  // Problems: those found, found since the last save and in doubt, and changed since then.
  mutable std::set<std::string> found_;
  std::set<std::string> doubted_, changed_;
  int added_ = 0, renewed_ = 0;
  double seconds_spent_ = 0;
};

}  // namespace trireme
