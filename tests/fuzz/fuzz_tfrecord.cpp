// A TFRecord file: its frames.
#include "tests/fuzz/fuzz.hpp"

namespace trireme::fuzz {

std::vector<Bytes> seeds() { return {drawn_file("tfrecord", "train-00000-of-00001")}; }

}  // namespace trireme::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trireme::fuzz;
  static const trireme::testkit::TemporaryFolder folder;
  write_bytes(folder / "train.tfrecord", {data, size});
  read_all(folder.path());
  return 0;
}
