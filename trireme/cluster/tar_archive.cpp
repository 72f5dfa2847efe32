#include "trireme/cluster/tar_archive.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <string_view>

#include "trireme/base/error.hpp"

namespace trireme::cluster {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kMostBytes = 0'77777777777;  // limit of the size field
constexpr std::size_t kSomeTime = 1'000'000'000;   // 2001: tar complains about 1970

// Header fields by offset in the block; numbers are octal digits.
class Header {
 public:
  void set(std::size_t place, std::string_view text) { std::copy(text.begin(), text.end(), block_.begin() + place); }
  void set_number(std::size_t place, int digits, std::size_t value) {
    set(place, fmt::format("{:0{}o}", value, digits));
  }
  // Over all bytes, with its own field as spaces.
  void set_checksum() {
    set(kChecksum, "        ");
    const auto sum = std::accumulate(block_.begin(), block_.end(), std::size_t{0}, [](std::size_t so_far, char byte) {
      return so_far + static_cast<unsigned char>(byte);
    });
    set(kChecksum, fmt::format("{:06o}", sum) + '\0');
  }
  std::string text() const { return {block_.begin(), block_.end()}; }

 private:
  static constexpr std::size_t kChecksum = 148;
  std::array<char, kBlock> block_{};
};

}  // namespace

void TarArchive::add(const std::string& name, const std::string& content, bool is_executable) {
  constexpr std::size_t kMostName = 100;
  if (name.empty() || name.size() > kMostName || content.size() > kMostBytes) {
    fail(ErrorKind::failed, "'{}' with {} bytes does not fit in an archive", name, content.size());
  }
  Header header;
  header.set(0, name);
  header.set_number(100, 7, is_executable ? 0755 : 0644);
  header.set_number(108, 7, 0);  // owner
  header.set_number(116, 7, 0);  // group
  header.set_number(124, 11, content.size());
  header.set_number(136, 11, kSomeTime);
  header.set(156, "0");  // a file
  header.set(257, "ustar");
  header.set(263, "00");
  header.set_checksum();
  bytes_ += header.text();
  bytes_ += content;
  bytes_.append((kBlock - content.size() % kBlock) % kBlock, '\0');
}

std::string TarArchive::bytes() const { return bytes_ + std::string(2 * kBlock, '\0'); }

}  // namespace trireme::cluster
