// A checkpoint, and a safetensors file that is none: header, metadata and tensors.
#include "tests/fuzz/fuzz.hpp"
#include "trireme/base/error.hpp"
#include "trireme/train/checkpoint.hpp"

namespace trireme::fuzz {

std::vector<Bytes> seeds() {
  const testkit::TemporaryFolder folder;
  train::Checkpoint checkpoint{
      .state = {.model = "small", .classes = 3, .step = 7, .samples = 70, .global_batch_size = 10, .optimizer = "sgd"},
      .tensors = {{"weights", HostTensor(Shape{2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})},
                  {"weights/optimizer/0", HostTensor(Shape{2, 3}, std::vector<float>(6))},
                  {"counts", HostTensor(Shape{2}, std::vector<std::int32_t>{1, 2})}}};
  write_checkpoint(checkpoint, folder / "checkpoint");
  train::write_safetensors(folder / "tensors", {}, {{"step", "7"}});
  return {read_bytes(folder / "checkpoint"), read_bytes(folder / "tensors")};
}

}  // namespace trireme::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trireme;
  static const testkit::TemporaryFolder folder;
  const std::string path = folder / "checkpoint";
  fuzz::write_bytes(path, {data, size});
  try {
    const train::SafetensorsFile file(path);
    for (const std::string& name : file.names()) file.read(name);
    const train::CheckpointFile checkpoint(path);
  } catch (const Error&) {
    // Refused, which is what most of them have to be.
  }
  return 0;
}
