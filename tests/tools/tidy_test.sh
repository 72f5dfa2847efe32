#!/usr/bin/env bash
# tools/tidy in a small repository of its own, whose sources are compiled as one. Usage: tidy_test.sh SOURCES
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/{tools,build/Unity}
cp "$1/tools/tidy" "$folder/tools/"
cp "$1/.clang-tidy" "$folder/"
cd "$folder"
failures=0
python=$(python3 -c 'import sys; print(sys.executable)')

# expect EXIT_CODE PATTERN COMMAND...
expect() {
  local wanted=$1 pattern=$2 code=0 output
  shift 2
  output=$("$@" 2>&1) || code=$?
  [[ $code == 77 ]] && [[ $output == *"is needed"* || $output == *"is missing;"* ]] && [[ $wanted != 77 ]] && exit 77
  if [[ $code != "$wanted" || ! $output =~ $pattern ]]; then
    echo "'$*' gave $code, not $wanted with '$pattern': $output"
    failures=$((failures + 1))
  fi
}
without() { [[ ! $(tidy) =~ $1 ]] || { echo "there is $1"; failures=$((failures + 1)); }; }
commit() { git add -A && git -c user.name=a -c user.email=a@b commit -qm "$1"; }
tidy() { tools/tidy --build build "$@"; }

git init -q
echo 'int zero(void* given) { return given == 0 ? 0 : 1; }' >old.cpp
echo '#include <string>
int* old() { return 0; }' >new.cpp
echo 'inline int* none() { return 0; }' >old.hpp
commit first
expect 77 "git cannot compare with HEAD~1" tidy
echo 'int other() { return 2; }' >gpu.cpp
echo 'inline int* nothing() { return 0; }' >new.hpp
echo '#include <string>
#include "new.hpp"
#include "old.hpp"
int* old() { return 0; }
std::string twice(std::string text) { std::string first = std::move(text); return first + text; }' >new.cpp
commit second
expect 77 "configure with CMake first" tidy
printf '#include "%s"\n' "$PWD/old.cpp" "$PWD/new.cpp" >build/Unity/unity_0.cxx
echo '[{"directory": "'"$PWD"'", "file": "'"$PWD"'/build/Unity/unity_0.cxx",
  "command": "c++ -Wunknown -std=c++20 -c '"$PWD"'/build/Unity/unity_0.cxx"}]' >build/compile_commands.json
expect 1 "new.cpp:5:.*bugprone-use-after-move.*new.hpp:1:.*1 sources checked.*not checked: gpu.cpp .this build" tidy
without "old.hpp:1" # it has not changed
without "new.cpp:4:" # nor has this line
expect 0 "0 sources checked.*not checked: new.cpp .too many" tidy --most 0
expect 1 "old.cpp:1:.*modernize-use-nullptr" tidy old.cpp
echo 'int one() { return 11; }' >new.cpp # not committed
expect 0 "1 sources checked, problems in 0" tidy
expect 1 "2 sources checked, problems in 1" tidy old.cpp new.cpp
expect 77 "nothing was checked: clang-tidy is missing" env PATH=/nowhere "$python" tools/tidy
echo 'Checks: [' >.clang-tidy
expect 1 "Error parsing" tidy
exit $((failures > 0))
