// NVIDIA's libraries, opened when a GPU is first used: mapping them costs a tenth of a second, and machines without a
// GPU need not have them. The *_functions.cpp files define the library functions and pass every call on.
#pragma once

#include <string>

namespace trireme::cuda {

class Library {
 public:
  // package: what to install if the file is missing.
  Library(std::string file, std::string package) : file_(std::move(file)), package_(std::move(package)) {}

  // Opens the library at the first call. Error(bad_input) if it or the function is missing. Thread-safe.
  void* find(const char* function) const;
  bool is_there() const;

 private:
  void* open(std::string& problem) const;  // nullptr if it fails, with the problem

  std::string file_, package_;
};

// Passes a call of our kFunction on to the library's function of the same name and type.
template <auto kFunction, typename... Arguments>
auto pass_on(const Library& library, const char* name, Arguments... arguments) {
  static const auto function = reinterpret_cast<decltype(kFunction)>(library.find(name));
  return function(arguments...);
}

}  // namespace trireme::cuda
