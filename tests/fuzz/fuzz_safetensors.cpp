// A safetensors file, as it is, and its JSON header alone in a file that is whole otherwise: with a changed length most
// would be refused before the header is looked at.
#include <cstring>

#include "tests/fuzz/fuzz.hpp"
#include "trireme/train/safetensors.hpp"

namespace trireme::fuzz {
namespace {

constexpr std::size_t kLengthBytes = 8, kDataBytes = 64;

void read_tensors(const std::string& path) {
  try {
    const train::SafetensorsFile file(path);
    for (const std::string& name : file.names()) file.read(name);
  } catch (const Error&) {
    // Refused, which is what most of them have to be.
  }
}

Bytes with_length_and_data(std::span<const std::uint8_t> header) {
  Bytes file(kLengthBytes);
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, kLengthBytes);
  file.insert(file.end(), header.begin(), header.end());
  file.resize(file.size() + kDataBytes);
  return file;
}

}  // namespace

std::vector<Bytes> seeds() {
  const testkit::TemporaryFolder folder;
  const std::vector<float> floats(12, 1.5f);
  const std::vector<std::int32_t> integers(2, 7);
  train::write_safetensors(folder / "file",
                           {{"weights", HostTensor(Shape{2, 3, 2}, floats)},
                            {"counts", HostTensor(Shape{2}, integers)},
                            {"nothing", HostTensor(TensorType{DataType::f32, Shape{0, 5}})}},
                           {{"step", "7"}, {"model", "small"}});
  const Bytes file = read_bytes(folder / "file");
  return {file, Bytes(file.begin() + kLengthBytes, file.end() - 56)};
}

}  // namespace trireme::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trireme::fuzz;
  static const trireme::testkit::TemporaryFolder folder;
  const std::span<const std::uint8_t> bytes(data, size);
  for (const Bytes& file : {Bytes(bytes.begin(), bytes.end()), with_length_and_data(bytes)}) {
    write_bytes(folder / "file", file);
    read_tensors(folder / "file");
  }
  return 0;
}
