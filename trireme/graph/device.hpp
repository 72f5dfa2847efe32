// Where a variable lives, as TensorFlow writes it: "/job:ps/task:1/cpu:0". Every part may be left out. Set on variables
// by Graph::DeviceScope or by hand; read by the placement of variables on parameter servers.
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
// "/job:ps/task:1/cpu:0", only the parts that are set; "" for none.
std::string to_string(const Device& device);

// Takes the parts /job:ps, /job:worker, /replica:0, /task:N, /cpu:N, /gpu:N and /device:CPU:N, /device:GPU:N, each at
// most once, in any order; cpu and gpu in capitals too. "" is no device. Anything else is Error(bad_input).
Device parse_device(std::string_view text);

// The inner device with what it leaves out taken from the outer one, as nested device scopes have it.
Device merge(const Device& outer, const Device& inner);

}  // namespace trireme
