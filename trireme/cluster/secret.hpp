// The secret of a job: a line of text with which its tasks prove that they belong together. Made by a launch, which
// passes it in the environment, readable only by the same user; or by the user, in a file.
#pragma once

#include <string>

namespace trireme::cluster {

std::string make_secret();  // 32 random bytes in hexadecimal

void check_secret(const std::string& secret, const std::string& source);  // Error(bad_input) if short or unprintable

// Strips the newline. Error(bad_input) also if others than the owner can read the file.
std::string read_secret_file(const std::string& path);

}  // namespace trireme::cluster
