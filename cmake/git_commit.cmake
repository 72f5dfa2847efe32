# Run by every build (cmake -P): writes the commit that is checked out into a header, and leaves the header alone when
# nothing has changed, so that only a new commit compiles anything again. Arguments: SOURCE_DIR, OUTPUT.
set(commit unknown)
find_program(GIT git)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE head RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(commit ${head})
    # Not diff-index, which takes files for changed that were only copied or touched.
    execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} diff --quiet HEAD -- RESULT_VARIABLE differs ERROR_QUIET)
    if(differs)
      string(APPEND commit -dirty)
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#pragma once

namespace trireme::perf {
inline constexpr const char* kGitCommit = "@commit@";
}
]])
