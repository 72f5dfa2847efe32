#include "trireme/graph/device.hpp"

#include <algorithm>
#include <charconv>

#include "trireme/base/error.hpp"

namespace trireme {
namespace {

constexpr std::string_view kForm = "expected parts of /job:ps|worker/task:N/cpu:N or gpu:N, as in /job:ps/task:1/cpu:0";

// Parses one device string, quoted in full in every message.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Device parse() {
    std::string_view rest = text_;
    while (!rest.empty()) {
      if (rest.front() != '/') bad_input("device '{}': {}", text_, kForm);
      const std::size_t end = std::min(rest.find('/', 1), rest.size());
      take_part(rest.substr(1, end - 1));
      rest.remove_prefix(end);
    }
    return device_;
  }

 private:
  void take_part(std::string_view part) {
    const std::size_t colon = part.find(':');
    const std::string_view key = part.substr(0, colon);
    const std::string_view value = colon == std::string_view::npos ? "" : part.substr(colon + 1);
    if (key == "job") {
      set(device_.job, job_of(value), "job");
    } else if (key == "task") {
      set(device_.task, number(value, part), "task");
    } else if (key == "replica") {  // part of TensorFlow's full names; there is only ever one
      if (number(value, part) != 0)
        bad_input("device '{}': '/{}' does not exist; replicas are tasks here", text_, part);
    } else if (key == "device") {
      take_processor(value, part);
    } else {
      take_processor(part, part);
    }
  }

  // "cpu:0", with or without "/device:" before it.
  void take_processor(std::string_view processor, std::string_view part) {
    const std::size_t colon = processor.find(':');
    const std::string_view kind = processor.substr(0, colon);
    const bool cpu = kind == "cpu" || kind == "CPU", gpu = kind == "gpu" || kind == "GPU";
    if ((!cpu && !gpu) || colon == std::string_view::npos) {
      bad_input("device '{}': cannot read '/{}'; {}", text_, part, kForm);
    }
    set(device_.processor, {cpu ? Device::Kind::cpu : Device::Kind::gpu, number(processor.substr(colon + 1), part)},
        "cpu or gpu");
  }

  Device::Job job_of(std::string_view name) const {
    for (const Device::Job job : {Device::Job::ps, Device::Job::worker}) {
      if (name == to_string(job)) return job;
    }
    bad_input("device '{}': unknown job '{}'; the jobs are ps and worker", text_, name);
  }

  int number(std::string_view digits, std::string_view part) const {
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 0) {
      bad_input("device '{}': '/{}' needs a number from 0, as in /task:1 or /cpu:0", text_, part);
    }
    return value;
  }

  template <typename Value>
  void set(std::optional<Value>& part, Value value, std::string_view what) const {
    if (part) bad_input("device '{}': {} is given twice", text_, what);
    part = value;
  }

  std::string_view text_;
  Device device_;
};

}  // namespace

std::string_view to_string(Device::Job job) { return job == Device::Job::ps ? "ps" : "worker"; }

std::string_view to_string(Device::Kind kind) { return kind == Device::Kind::cpu ? "cpu" : "gpu"; }

std::string to_string(const Device& device) {
  std::string text;
  if (device.job) text += fmt::format("/job:{}", to_string(*device.job));
  if (device.task) text += fmt::format("/task:{}", *device.task);
  if (device.processor) text += fmt::format("/{}:{}", to_string(device.processor->kind), device.processor->index);
  return text;
}

Device parse_device(std::string_view text) { return Parser(text).parse(); }

Device merge(const Device& outer, const Device& inner) {
  return {.job = inner.job ? inner.job : outer.job,
          .task = inner.task ? inner.task : outer.task,
          .processor = inner.processor ? inner.processor : outer.processor};
}

}  // namespace trireme
