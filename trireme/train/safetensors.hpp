// Files of named tensors in the safetensors format: eight bytes with the length of a JSON header, the header with type,
// shape and place of each tensor and with texts under "__metadata__", then the tensors' bytes, plain, row-major and
// little-endian. Used by checkpoints and by `trireme export`. Readers elsewhere: the safetensors library, PyTorch's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/host_tensor.hpp"

namespace trireme::train {

using Metadata = std::map<std::string, std::string>;

struct NamedTensor {
  std::string name;
  TensorType type;  // f32 or i32
  std::span<const std::byte> bytes;
};

// Written aside and renamed. Error(failed) where it cannot be written; nothing is left then.
void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors, const Metadata& metadata);

class SafetensorsFile {
 public:
  // Error(bad_input) that names the path and what is wrong, where it is not such a file or not a whole one. Whatever
  // the file says, no more is read or allocated than it has bytes.
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();

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
  class Mapping;

  const Entry& entry(const std::string& name) const;

  std::string path_;
  std::unique_ptr<Mapping> mapping_;
  Metadata metadata_;
  std::map<std::string, Entry> entries_;
};

}  // namespace trireme::train
