// Manual pages, made of what --help says.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

namespace trireme::cli {

std::string man_page(const CLI::App& command);  // in roff
// trireme.1, trireme-bench.1 and so on. Error(failed) if the directory cannot be written.
void write_man_pages(const CLI::App& program, const std::filesystem::path& directory);

}  // namespace trireme::cli
