// The tf.Example in a record whose frame is whole: no CRC keeps changes away from the parser.
#include "tests/fuzz/fuzz.hpp"
#include "trireme/data/record_file.hpp"

namespace trireme::fuzz {

std::vector<Bytes> seeds() {
  const testkit::TemporaryFolder folder;
  write_bytes(folder / "file", drawn_file("tfrecord", "train-00000-of-00001"));
  const data::InputFile file(folder / "file");
  std::vector<Bytes> examples;
  std::vector<std::byte> buffer;
  for (const data::RecordPlace& place : index_records(file).records) {
    const auto record = read_record(file, place, buffer);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(record.data());
    examples.emplace_back(bytes, bytes + record.size());
  }
  return examples;
}

}  // namespace trireme::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trireme;
  static const testkit::TemporaryFolder folder;
  std::vector<std::byte> frame;
  data::frame_record(std::as_bytes(std::span(data, size)), frame);
  fuzz::write_bytes(folder / "train.tfrecord", {reinterpret_cast<const std::uint8_t*>(frame.data()), frame.size()});
  fuzz::read_all(folder.path());
  return 0;
}
