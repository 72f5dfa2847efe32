# Run by the build (cmake -P): writes texts into a header as string constants, so that the binary needs no files beside
# it. Arguments: OUTPUT, and NAMES and FILES, lists of the same length.
set(header "// Made by the build from ${FILES}.\n#pragma once\n\n#include <string_view>\n\nnamespace trireme::report {\n")
foreach(name file IN ZIP_LISTS NAMES FILES)
  file(READ ${file} text)
  string(APPEND header "inline constexpr std::string_view ${name} = R\"embedded(" "${text}" ")embedded\";\n")
endforeach()
file(WRITE ${OUTPUT} "${header}}  // namespace trireme::report\n")
