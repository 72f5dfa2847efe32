#include "trireme/cluster/secret.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"

namespace trireme::cluster {
namespace {

class SecretFile : public ::testing::Test {
 protected:
  std::string write(const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_ / "job.secret";
    std::ofstream(path, std::ios::trunc) << text;
    chmod(path.c_str(), mode);
    return path;
  }

  static std::string refusal(const std::string& path) {
    try {
      read_secret_file(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      return error.what();
    }
    return "not refused";
  }

  testkit::TemporaryFolder folder_;
};

TEST(Secret, IsNeverTheSame) {
  const std::string one = make_secret(), two = make_secret();
  EXPECT_EQ(one.size(), 64U);
  EXPECT_NE(one, two);
  check_secret(one, "test");
}

TEST_F(SecretFile, HoldsOneLine) {
  EXPECT_EQ(read_secret_file(write("0123456789abcdef\n")), "0123456789abcdef");
  EXPECT_EQ(read_secret_file(write("0123456789abcde=", 0400)), "0123456789abcde=");
}

TEST_F(SecretFile, IsForItsOwnerAlone) {
  for (const mode_t mode : {0644, 0640, 0604, 0620}) {
    const std::string path = write("0123456789abcdef", mode);
    EXPECT_EQ(refusal(path),
              fmt::format(
                  "--secret-file {}: users other than its owner can read or change it (mode {:04o}); run chmod 600 {}",
                  path, mode, path));
  }
}

TEST_F(SecretFile, MustBeHardToGuess) {
  EXPECT_NE(refusal(write("0123456789abcde\n")).find("a secret of 15 characters can be guessed; it needs at least 16"),
            std::string::npos);
  EXPECT_NE(refusal(write("")).find("a secret of 0 characters"), std::string::npos);
}

TEST_F(SecretFile, HasPrintableCharactersOnly) {
  for (const std::string text : {"0123456789abcdef\n0123456789abcdef\n", "0123456789 abcdef",
                                 "0123456789abcd\x01\x02gh", "0123456789abcdef\xc3\xa4"}) {
    EXPECT_NE(refusal(write(text)).find("one line of at most 4096 printable characters"), std::string::npos);
  }
  EXPECT_NE(refusal(write(std::string(10'000, 'x'))).find("at most 4096"), std::string::npos);
}

TEST_F(SecretFile, MustBeAFile) {
  EXPECT_NE(refusal("/no/such/file").find("cannot read this file: No such file"), std::string::npos);
  EXPECT_NE(refusal("/dev/null").find("not a regular file"), std::string::npos);
  EXPECT_NE(refusal(folder_.path()).find("not a regular file"), std::string::npos);
}

}  // namespace
}  // namespace trireme::cluster
