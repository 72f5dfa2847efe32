// Where a variable lives, in TensorFlow's notation: "/job:ps/task:1/cpu:0". All parts are optional. Set on variables by
// Graph::DeviceScope or directly; read by the placement on parameter servers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trireme {

struct Device {
  enum class Job : std::uint8_t { ps, worker };
  enum class Kind : std::uint8_t { cpu, gpu };
  struct Processor {
    Kind kind = Kind::cpu;
    int index = 0;
    bool operator==(const Processor&) const = default;
  };

  std::optional<Job> job;
  std::optional<int> task;
  std::optional<Processor> processor;

  bool operator==(const Device&) const = default;
};

std::string_view to_string(Device::Job job);
std::string_view to_string(Device::Kind kind);
std::string to_string(const Device& device);  // only the parts that are set

// Accepts /job:ps, /job:worker, /replica:0, /task:N, /cpu:N, /gpu:N and /device:CPU:N, /device:GPU:N, each at most
// once, in any order; cpu and gpu also in capitals. "" is no device. Otherwise Error(bad_input).
Device parse_device(std::string_view text);

// The inner device with missing parts from the outer one, as for nested device scopes.
Device merge(const Device& outer, const Device& inner);

}  // namespace trireme
