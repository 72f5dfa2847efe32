// Files of named tensors in the safetensors format: 8 bytes with the length of a JSON header; the header with type,
// shape and offset of each tensor and strings under "__metadata__"; then the raw tensors, row-major and little-endian.
// Used by checkpoints and `trireme export`; the safetensors library and PyTorch can read them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/base/host_tensor.hpp"
#include "trireme/base/parse.hpp"
#include "trireme/data/files.hpp"

namespace trireme::train {

using Metadata = std::map<std::string, std::string>;

// Removes entries as it reads them. Error(bad_input) names the source if an entry is missing or not a number.
class MetadataReader {
 public:
  MetadataReader(std::string source, Metadata metadata) : source_(std::move(source)), metadata_(std::move(metadata)) {}

  std::string text(const std::string& key) {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) bad_input("{} is damaged or not a Trireme checkpoint: it has no {}", source_, key);
    std::string value = std::move(found->second);
    metadata_.erase(found);
    return value;
  }
  template <typename Number>  // integers must be >= 0, others finite
  Number number(const std::string& key, int base = 10) {
    const std::string value = text(key);
    std::optional<Number> number;
    bool is_possible = false;
    if constexpr (std::is_integral_v<Number>) {
      number = parse_number<Number>(value, base);
      is_possible = number && !std::cmp_less(*number, 0);
    } else {
      number = parse_number<Number>(value);
      is_possible = number && std::isfinite(*number);
    }
    if (!is_possible) bad_input("{} is damaged: its {} is '{}'", source_, key, value);
    return *number;
  }
  // For entries that the first checkpoints lack.
  template <typename Number>
  std::optional<Number> number_if_any(const std::string& key) {
    return metadata_.contains(key) ? std::optional(number<Number>(key)) : std::nullopt;
  }
  std::string text_if_any(const std::string& key) { return metadata_.contains(key) ? text(key) : std::string(); }
  Metadata rest() { return std::move(metadata_); }

 private:
  std::string source_;
  Metadata metadata_;
};

struct NamedTensor {
  std::string name;
  HostTensor value;
};

// Writes a temporary file and renames it. Error(failed) if it cannot be written; nothing is left behind.
void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors, const Metadata& metadata);

class SafetensorsFile {
 public:
  // Error(bad_input) names the path and the problem if the file is invalid or truncated. Never reads or allocates more
  // than the file's size, whatever the header says.
  explicit SafetensorsFile(const std::string& path);

  const Metadata& metadata() const { return metadata_; }
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return entries_.contains(name); }
  const TensorType& type(const std::string& name) const;
  HostTensor read(const std::string& name) const;  // Error(bad_input) if there is no such tensor

 private:
  struct Entry {
    TensorType type;
    std::int64_t begin = 0;  // in the file
  };

  const Entry& entry(const std::string& name) const;

  data::InputFile file_;
  Metadata metadata_;
  std::map<std::string, Entry> entries_;
};

}  // namespace trireme::train
