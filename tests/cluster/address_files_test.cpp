#include "trireme/cluster/address_files.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"

namespace trireme::cluster {
namespace {

class AddressFiles : public ::testing::Test {
 protected:
  std::vector<HostSlots> read(const std::string& public_ones, const std::string& private_ones) const {
    std::ofstream(folder_ / "public") << public_ones;
    std::ofstream(folder_ / "private") << private_ones;
    return read_address_files(folder_ / "public", folder_ / "private");
  }
  std::string refusal(const std::string& public_ones, const std::string& private_ones) const {
    try {
      read(public_ones, private_ones);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      return error.what();
    }
    return "none";
  }

  testkit::TemporaryFolder folder_;
};

TEST_F(AddressFiles, LineByLineTheSameHost) {
  const auto hosts =
      read("54.1.2.3\nec2-54-1-2-4.compute.amazonaws.com\r\n2001:db8::7", "10.0.0.1\n 10.0.0.2 \nFD00::0:7\n");
  ASSERT_EQ(hosts.size(), 3U);
  EXPECT_EQ(hosts[0].name, "54.1.2.3");
  EXPECT_EQ(hosts[0].address, "10.0.0.1");
  EXPECT_EQ(hosts[1].name, "ec2-54-1-2-4.compute.amazonaws.com");
  EXPECT_EQ(hosts[1].address, "10.0.0.2");
  EXPECT_EQ(hosts[2].address, "fd00::7") << "as the system writes it";
  EXPECT_EQ(usual_workers(hosts), 3);
  const auto tasks = spread_tasks(hosts, {.workers = 3, .servers = 1});
  EXPECT_EQ(tasks[1].address, "10.0.0.2");
}

TEST_F(AddressFiles, DifferentLengthsAreRefusedWithBothNumbers) {
  const std::string text = refusal("a\nb\nc\n", "10.0.0.1\n10.0.0.2\n");
  EXPECT_NE(text.find("has 3 addresses"), std::string::npos) << text;
  EXPECT_NE(text.find("has 2;"), std::string::npos) << text;
}

TEST_F(AddressFiles, BadLinesAreNamed) {
  const std::string good = "10.0.0.1\n10.0.0.2\n10.0.0.3\n";
  for (const std::string bad :
       {"1.2.3.4\n\n1.2.3.5\n", "1.2.3.4\n1.2.3.4\n", "1.2.3.4\n-oProxyCommand=x\n", "1.2.3.4\n1.2.3.5 # mine\n"}) {
    const std::string text = refusal(bad, good);
    EXPECT_TRUE(text.find("--public-ips") == 0 && text.find("public, line 2: ") != std::string::npos) << text;
  }
  for (const std::string bad : {"10.0.0.1\n\n10.0.0.2\n", "10.0.0.1\n10.0.0.1\n", "10.0.0.1\nip-10-0-0-2\n",
                                "10.0.0.1\n10.0.0.256\n", "10.0.0.1\n10.0.0.2/24\n"}) {
    const std::string text = refusal("a\nb\nc\n", bad);
    EXPECT_TRUE(text.find("--private-ips") == 0 && text.find("private, line 2: ") != std::string::npos) << text;
  }
  EXPECT_NE(refusal("", good).find("has no address"), std::string::npos);
  EXPECT_THROW(read_address_files(folder_ / "none", folder_ / "private"), Error);
}

}  // namespace
}  // namespace trireme::cluster
