// Files of named tensors in the safetensors format: eight bytes with the length of a JSON header, the header with type,
// shape and place of each tensor and with texts under "__metadata__", then the tensors' bytes, plain, row-major and
// little-endian. Used by checkpoints and by `trireme export`. Readers elsewhere: the safetensors library, PyTorch's.
#pragma once

#include <charconv>
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
#include "trireme/data/files.hpp"

namespace trireme::train {

using Metadata = std::map<std::string, std::string>;

// Takes entries out as it reads them: what is left are others'. Error(bad_input) for what is missing or not a number,
// in which the source is named.
class MetadataReader {
 public:
  MetadataReader(std::string source, Metadata metadata) : source_(std::move(source)), metadata_(std::move(metadata)) {}

  std::string text(const std::string& key) {
    const auto found = metadata_.find(key);
    if (found == metadata_.end())
      bad_input("{} is damaged, or it is not a checkpoint of trireme: it does not say its {}", source_, key);
    std::string value = std::move(found->second);
    metadata_.erase(found);
    return value;
  }
  template <typename Number>  // whole ones are 0 or more, others finite
  Number number(const std::string& key, int base = 10) {
    const std::string value = text(key);
    const char* const end = value.data() + value.size();
    Number number = 0;
    std::from_chars_result read{};
    bool is_possible = false;
    if constexpr (std::is_integral_v<Number>) {
      read = std::from_chars(value.data(), end, number, base);
      is_possible = !std::cmp_less(number, 0);
    } else {
      read = std::from_chars(value.data(), end, number);
      is_possible = std::isfinite(number);
    }
    if (!is_possible || read.ec != std::errc() || read.ptr != end) {
      bad_input("{} is damaged: its {} is '{}'", source_, key, value);
    }
    return number;
  }
  // Of what the first checkpoints did not have.
  template <typename Number>
  std::optional<Number> number_if_any(const std::string& key) {
    return metadata_.contains(key) ? std::optional(number<Number>(key)) : std::nullopt;
  }
  Metadata rest() { return std::move(metadata_); }

 private:
  std::string source_;
  Metadata metadata_;
};

struct NamedTensor {
  std::string name;
  TensorType type;  // f32 or i32
  std::span<const std::byte> bytes;
};

// Written aside and renamed. Error(failed) where it cannot be written; nothing is left then.
void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors, const Metadata& metadata);

class SafetensorsFile {
 public:
  // Error(bad_input) that names the path and what is wrong if it is not such a file or not a whole one. Whatever the
  // file says, no more is read or allocated than it has bytes.
  explicit SafetensorsFile(const std::string& path);

  const Metadata& metadata() const { return metadata_; }
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return entries_.contains(name); }
  const TensorType& type(const std::string& name) const;
  HostTensor read(const std::string& name) const;  // Error(bad_input) where there is none of that name

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
