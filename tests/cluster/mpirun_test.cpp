#include "trireme/cluster/mpirun.hpp"

#include <gtest/gtest.h>

#include "trireme/base/error.hpp"

namespace trireme::cluster {
namespace {

TEST(Mpirun, APathThatItCannotPassOnToSshIsNamed) {
  for (const auto& [option, ssh] : {std::pair("--ssh-key", SshOptions{.key = "/my keys/id"}),
                                    std::pair("--ssh-config", SshOptions{.config = "/a:b/config"})}) {
    try {
      mpirun_runners(ssh, {});
      ADD_FAILURE() << option;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      EXPECT_NE(std::string(error.what()).find(option), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace trireme::cluster
