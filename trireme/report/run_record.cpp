#include "trireme/report/run_record.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "trireme/base/error.hpp"

namespace trireme::report {
namespace {

Json number(std::optional<double> value) { return value && std::isfinite(*value) ? Json(*value) : Json(nullptr); }

Json to_json(const Task& task) {
  return {{"role", task.role}, {"index", task.index}, {"host", task.host}, {"cores", task.cores}};
}

Json to_json(const Breakdown& breakdown) {
  return {{"compute", number(breakdown.compute)},
          {"communication", number(breakdown.communication)},
          {"exposed_communication", number(breakdown.exposed_communication)},
          {"input_wait", number(breakdown.input_wait)},
          {"optimizer", number(breakdown.optimizer)},
          {"idle", number(breakdown.idle)}};
}

Json to_json(const StepSeconds& seconds) {
  return {{"mean", number(seconds.mean)},
          {"median", number(seconds.median)},
          {"p95", number(seconds.p95)},
          {"stderr", number(seconds.stderr_mean)}};
}

template <typename Items>
Json list(const Items& items) {
  Json result = Json::array();
  for (const auto& item : items) result.push_back(to_json(item));
  return result;
}

Json to_json(const Results& results) {
  return {{"images_per_second", number(results.images_per_second)},
          {"images_per_second_per_worker", number(results.images_per_second_per_worker)},
          {"images_per_second_per_repeat", results.images_per_second_per_repeat},
          {"step_seconds", to_json(results.step_seconds)},
          {"jitter", number(results.jitter)},
          {"loss", number(results.loss)},
          {"breakdown", list(results.breakdown)},
          {"overlap", number(results.overlap)},
          {"straggling", results.straggling},
          {"servers", results.servers},
          {"scaling_efficiency", number(results.scaling_efficiency)},
          {"share_of_independent", number(results.share_of_independent)},
          {"alone_images_per_second", results.alone_images_per_second},
          {"independent_images_per_second", results.independent_images_per_second},
          {"peak_rss_bytes", results.peak_rss_bytes},
          {"flops_per_second", number(results.flops_per_second)},
          {"utilisation", number(results.utilisation)}};
}

// Owns a descriptor; close errors matter for data, so those callers close by hand.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool is_open() const { return descriptor_ >= 0; }
  bool write_all(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t count = ::write(descriptor_, text.data(), text.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  bool sync() const { return ::fsync(descriptor_) == 0; }

 private:
  int descriptor_;
};

// Devices and pipes (/dev/null, /dev/stdout) are written directly: a rename would replace them by a file.
bool is_special(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

// What a rename has to replace: the file behind a link, not the link.
std::string target_of(const std::string& path) {
  std::error_code error;
  const auto target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

std::string aside_of(const std::string& target) { return fmt::format("{}.{}.tmp", target, ::getpid()); }

int create(const std::string& path) { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644); }

[[noreturn]] void write_failed(const std::string& path, int code) {
  fail(ErrorKind::failed, "cannot write '{}': {}", path, std::strerror(code));
}

void write_special(const std::string& text, const std::string& path) {
  const File file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.is_open() || !file.write_all(text)) write_failed(path, errno);
}

void write_aside_and_rename(const std::string& text, const std::string& path) {
  const std::string target = target_of(path), aside = aside_of(target);
  {
    const File file(create(aside));
    if (!file.is_open()) write_failed(path, errno);
    if (!file.write_all(text) || !file.sync()) {
      const int code = errno;
      ::unlink(aside.c_str());
      write_failed(path, code);
    }
  }
  if (::rename(aside.c_str(), target.c_str()) != 0) {
    const int code = errno;
    ::unlink(aside.c_str());
    write_failed(path, code);
  }
}

}  // namespace

Json to_json(const RunRecord& record) {
  Json json{{"schema", kRunSchema},
            {"command", record.command},
            {"started", record.started},
            {"build", record.build},
            {"machine", record.machine},
            {"config", record.config},
            {"cluster", list(record.cluster)},
            {"steps", record.steps},
            {"losses", record.losses},
            {"results", to_json(record.results)}};
  if (record.interrupted) json["interrupted"] = true;
  if (record.error) json["error"] = *record.error;
  return json;
}

std::string rfc3339(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

void check_writable(const std::string& path) {
  if (path == "-") return;
  if (path.empty()) bad_input("the path of the record is empty; give a file, or - for stdout");
  // A path that cannot even be looked at (too long a name, a folder that may not be searched) is for the trial below.
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    bad_input("cannot write the record to '{}': it is a directory; give a file, or - for stdout", path);
  int code = 0;
  if (is_special(path)) {
    if (::access(path.c_str(), W_OK) != 0) code = errno;
  } else {
    // Trying is the only test that knows of permissions, quotas and read-only file systems alike.
    const std::string aside = aside_of(target_of(path));
    const File file(create(aside));
    code = file.is_open() ? 0 : errno;
    if (file.is_open()) ::unlink(aside.c_str());
  }
  if (code != 0)
    bad_input(
        "cannot write the record to '{}': {}; give a file in a folder that exists and can be written, or - for stdout",
        path, std::strerror(code));
}

void write_json(const Json& json, const std::string& path) {
  // Names that are not UTF-8 (a host, an argument) must not cost the record.
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (path == "-") {
    std::fflush(stdout);
    if (!File(::dup(STDOUT_FILENO)).write_all(text)) write_failed("stdout", errno);
  } else if (is_special(path)) {
    write_special(text, path);
  } else {
    write_aside_and_rename(text, path);
  }
}

}  // namespace trireme::report
