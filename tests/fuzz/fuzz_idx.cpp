// The images file of an idx data set, plain and compressed by turns, beside labels that are whole.
#include "tests/fuzz/fuzz.hpp"

namespace trireme::fuzz {
namespace {

struct Folder {
  testkit::TemporaryFolder folder;
  Folder() { write_bytes(folder / "train-labels-idx1-ubyte", drawn_file("idx", "train-labels-idx1-ubyte")); }
};

bool is_compressed(std::span<const std::uint8_t> bytes) { return bytes.size() > 1 && bytes[0] == 0x1f; }

Bytes compressed(const Bytes& bytes) {
  const testkit::TemporaryFolder folder;
  write_bytes(folder / "file", bytes);
  if (std::system(("gzip " + (folder / "file")).c_str()) != 0) return bytes;
  return read_bytes(folder / "file.gz");
}

}  // namespace

std::vector<Bytes> seeds() {
  const Bytes images = drawn_file("idx", "train-images-idx3-ubyte");
  return {images, compressed(images), drawn_file("idx", "train-labels-idx1-ubyte")};
}

}  // namespace trireme::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trireme::fuzz;
  static const Folder folder;
  const std::span<const std::uint8_t> bytes(data, size);
  const std::string path = folder.folder / "train-images-idx3-ubyte";
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".gz");
  write_bytes(is_compressed(bytes) ? path + ".gz" : path, bytes);
  read_all(folder.folder.path());
  return 0;
}
