// The secret of a job: a line of text that all its tasks know and nobody else does, by which they prove that they
// belong together. Made by a launch, which hands it on by the environment, where only the same user can read it; or by
// the user, in a file.
#pragma once

#include <string>

namespace trireme::cluster {

std::string make_secret();  // 32 random bytes in hexadecimal

// Error(bad_input) where it is too short to be one, or has other than printable characters.
void check_secret(const std::string& secret, const std::string& source);

// Without the end of the line. Error(bad_input) too where others than its owner may read the file.
std::string read_secret_file(const std::string& path);

}  // namespace trireme::cluster
