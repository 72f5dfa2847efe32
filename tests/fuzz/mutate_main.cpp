// Runs a fuzz target on changed copies of its seeds: `fuzz_idx 10000`. The same number gives the same inputs. With a
// file instead of a number the target runs on that file.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/fuzz.hpp"
#include "trireme/base/random.hpp"

// A size that a file only claims must not be allocated. The sanitizer needs an address space of its own, so there it
// limits each allocation instead. Its name is the sanitizer's.
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=1024"; }

namespace trireme::fuzz {
namespace {

constexpr rlim_t kMostMemory = std::size_t{2} << 30;

class Mutator {
 public:
  explicit Mutator(std::uint64_t number) : number_(number) {}

  Bytes changed(Bytes bytes) {
    for (int times = 1 + below(4); times > 0 && !bytes.empty(); --times) change(bytes);
    return bytes;
  }
  int below(std::size_t limit) { return static_cast<int>(philox(1, number_, count_++)[0] % limit); }

 private:
  // Early bytes are hit more often: headers are there.
  std::size_t place(const Bytes& bytes) {
    const std::size_t range = below(3) == 0 ? std::min<std::size_t>(bytes.size(), 64) : bytes.size();
    return static_cast<std::size_t>(below(range));
  }

  void change(Bytes& bytes) {
    constexpr std::array<std::uint8_t, 6> kTelling{0x00, 0xff, 0x7f, 0x80, 0x01, 0xd9};
    const std::size_t at = place(bytes);
    switch (below(7)) {
      case 0:
        bytes[at] ^= static_cast<std::uint8_t>(1 << below(8));
        break;
      case 1:
        bytes[at] = static_cast<std::uint8_t>(below(256));
        break;
      case 2:
        bytes[at] = kTelling[below(kTelling.size())];
        break;
      case 3:
        bytes.resize(at);
        break;
      case 4:  // a number of four bytes becomes large, or small
        for (std::size_t i = at; i < std::min(at + 4, bytes.size()); ++i) bytes[i] = kTelling[at % 3];
        break;
      case 5: {  // a piece comes twice
        const std::size_t end = at + static_cast<std::size_t>(below(std::min<std::size_t>(bytes.size() - at, 64))) + 1;
        const Bytes piece(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                          bytes.begin() + static_cast<std::ptrdiff_t>(std::min(end, bytes.size())));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), piece.begin(), piece.end());
        break;
      }
      default: {  // a piece is missing
        const std::size_t end = std::min(bytes.size(), at + 1 + static_cast<std::size_t>(below(64)));
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin() + static_cast<std::ptrdiff_t>(end));
      }
    }
  }

  std::uint64_t number_, count_ = 0;
};

void run(const Bytes& input) { LLVMFuzzerTestOneInput(input.data(), input.size()); }

int mutate(std::uint64_t inputs) {
  const std::vector<Bytes> all = seeds();
  for (const Bytes& seed : all) run(seed);
  for (std::uint64_t number = 0; number < inputs; ++number) {
    try {
      run(Mutator(number).changed(all[number % all.size()]));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "input %llu: %s\n", static_cast<unsigned long long>(number), error.what());
      return 1;
    }
  }
  std::printf("%llu inputs from %zu seeds\n", static_cast<unsigned long long>(inputs), all.size());
  return 0;
}

}  // namespace
}  // namespace trireme::fuzz

int main(int argc, char** argv) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit limit{trireme::fuzz::kMostMemory, trireme::fuzz::kMostMemory};
  setrlimit(RLIMIT_AS, &limit);
#endif
  char* end = nullptr;
  const unsigned long long inputs = argc == 2 ? std::strtoull(argv[1], &end, 10) : 0;
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s NUMBER_OF_INPUTS | FILE\n", argv[0]);
    return 2;
  }
  if (*end == '\0') return trireme::fuzz::mutate(inputs);
  trireme::fuzz::run(trireme::fuzz::read_bytes(argv[1]));
  return 0;
}
