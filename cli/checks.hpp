// Validators for option->check(); messages follow the value: "--threads 0: must be a whole number from 1 to 1024".
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace trireme::cli {

CLI::Validator whole_number(std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max());
CLI::Validator byte_count();  // for option->transform(): also takes 64k and 256MB
CLI::Validator one_of(const std::vector<std::string>& texts);

std::vector<std::string> split_list(const std::string& list);  // "a,b"

}  // namespace trireme::cli
