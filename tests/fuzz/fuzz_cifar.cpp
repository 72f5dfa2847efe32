// One file of CIFAR-10 beside others that are whole.
#include "tests/fuzz/fuzz.hpp"

namespace trireme::fuzz {
namespace {

Bytes record(std::uint8_t label) {
  Bytes bytes(3073, 100);
  bytes[0] = label;
  return bytes;
}

struct Folder {
  testkit::TemporaryFolder folder;
  Folder() {
    for (const char number : {'2', '3', '4', '5'}) {
      write_bytes(folder / (std::string("data_batch_") + number + ".bin"), record(1));
    }
  }
};

}  // namespace

std::vector<Bytes> seeds() {
  Bytes two = record(3);
  const Bytes second = record(9);
  two.insert(two.end(), second.begin(), second.end());
  return {record(0), two};
}

}  // namespace trireme::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trireme::fuzz;
  static const Folder folder;
  // Nearly every change of length is refused at once; a file of whole records is looked at as well.
  for (const std::size_t part : {size, size / 3073 * 3073}) {
    write_bytes(folder.folder / "data_batch_1.bin", {data, part});
    read_all(folder.folder.path());
  }
  return 0;
}
