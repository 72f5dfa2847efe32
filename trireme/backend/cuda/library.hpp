// NVIDIA's libraries are opened when a GPU is first used, not when the program starts: mapping them takes a tenth of a
// second of every process, and a machine without a GPU need not have them. The *_functions.cpp files define the
// functions of each library that the backend calls, and pass every call on.
#pragma once

#include <string>

namespace trireme::cuda {

class Library {
 public:
  // Which package a user would install when it is missing.
  Library(std::string file, std::string package) : file_(std::move(file)), package_(std::move(package)) {}

  // Opens the library at the first call. Throws Error(bad_input) when it or the function is not there. Thread-safe.
  void* find(const char* function) const;
  bool is_there() const;

 private:
  void* open(std::string& problem) const;  // nullptr with why not

  std::string file_, package_;
};

// The function of the library that has the name and the type of kFunction, ours, from which it is called.
template <auto kFunction, typename... Arguments>
auto pass_on(const Library& library, const char* name, Arguments... arguments) {
  static const auto function = reinterpret_cast<decltype(kFunction)>(library.find(name));
  return function(arguments...);
}

}  // namespace trireme::cuda
