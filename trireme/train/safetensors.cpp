#include "trireme/train/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <optional>

#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"

namespace trireme::train {
namespace {

using Json = nlohmann::ordered_json;  // keeps tensors in the given order

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kAlignment = 8;  // of the data, as other writers do: the header is padded with spaces
constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr const char* kMetadataKey = "__metadata__";

const char* type_name(DataType type) { return type == DataType::i32 ? "I32" : "F32"; }

std::optional<DataType> parse_type(const std::string& name) {
  if (name == "F32") return DataType::f32;
  if (name == "I32") return DataType::i32;
  return std::nullopt;
}

std::string header_text(const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  std::int64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    const TensorType& type = tensor.value.type();
    const std::int64_t end = offset + type.bytes();
    header[tensor.name] = {
        {"dtype", type_name(type.dtype)}, {"shape", type.shape.dims()}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

// Bytes of a tensor of this shape; nothing if larger than any file.
std::optional<std::int64_t> bytes_of(const std::vector<std::int64_t>& dims) {
  std::int64_t bytes = 4;
  for (const std::int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes)) return std::nullopt;
  }
  return bytes;
}

}  // namespace

void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  NewFile file(path);
  const std::string header = header_text(tensors, metadata);
  const std::uint64_t length = header.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const NamedTensor& tensor : tensors) file.write(tensor.value.bytes());
  file.commit();
}

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  const auto refuse = [&path](const std::string& why) { bad_input("'{}' is not a safetensors file: {}", path, why); };
  const auto file_bytes = static_cast<std::uint64_t>(file_.size());
  std::uint64_t length = 0;
  if (file_bytes < kLengthBytes) refuse(fmt::format("it has {} bytes", file_bytes));
  file_.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > std::min(file_bytes - kLengthBytes, kLongestHeader)) {
    refuse(
        fmt::format("its header would have {} bytes, but the file has {}; it is another kind of file, or was truncated",
                    length, file_bytes));
  }
  std::string text(length, '\0');
  file_.read(kLengthBytes, std::as_writable_bytes(std::span(text)));
  const std::uint64_t data = kLengthBytes + length;
  const auto data_bytes = static_cast<std::int64_t>(file_bytes - data);
  try {
    const Json header = Json::parse(text);
    if (!header.is_object()) refuse("its header is not an object");
    for (const auto& [name, entry] : header.items()) {
      if (name == kMetadataKey) {
        metadata_ = entry.get<Metadata>();
        continue;
      }
      const auto type = parse_type(entry.at("dtype").get<std::string>());
      const auto dims = entry.at("shape").get<std::vector<std::int64_t>>();
      const auto offsets = entry.at("data_offsets").get<std::vector<std::int64_t>>();
      if (!type)
        refuse(fmt::format("tensor '{}' has type {}; F32 and I32 can be read", name, entry.at("dtype").dump()));
      const auto expected = bytes_of(dims);
      if (offsets.size() != 2 || offsets[0] < 0 || !expected || offsets[1] < offsets[0] ||
          offsets[1] - offsets[0] != *expected) {
        refuse(fmt::format("shape and offsets of tensor '{}' do not agree", name));
      }
      if (offsets[1] > data_bytes) {
        refuse(fmt::format("tensor '{}' would end at byte {} of the data, which has {}; the file was truncated", name,
                           offsets[1], data_bytes));
      }
      entries_[name] = {.type = {*type, Shape(dims)}, .begin = static_cast<std::int64_t>(data) + offsets[0]};
    }
  } catch (const nlohmann::json::exception& error) {
    refuse(fmt::format("its header cannot be read ({})", error.what()));
  }
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const SafetensorsFile::Entry& SafetensorsFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) bad_input("'{}' has no tensor '{}'", file_.path(), name);
  return found->second;
}

const TensorType& SafetensorsFile::type(const std::string& name) const { return entry(name).type; }

HostTensor SafetensorsFile::read(const std::string& name) const {
  const Entry& from = entry(name);
  HostTensor value(from.type);
  file_.read(from.begin, {static_cast<std::byte*>(value.data()), static_cast<std::size_t>(from.type.bytes())});
  return value;
}

}  // namespace trireme::train
