# The scripts of the project.
add_test(NAME tools.setup COMMAND ${CMAKE_CURRENT_LIST_DIR}/setup_test.sh ${PROJECT_SOURCE_DIR}/tools/setup)
foreach(script tools/format tools/setup-peers tools/variants tools/bare-machine .ci/run)
  add_test(NAME tools.syntax.${script} COMMAND bash -n ${PROJECT_SOURCE_DIR}/${script})
  set_tests_properties(tools.syntax.${script} PROPERTIES LABELS unit)
endforeach()
# An #ifdef would see the 0 of trireme/features.hpp as a yes, and nothing where that is not included.
add_test(NAME tools.features COMMAND bash -c
  "! grep -rnE '(ifn?def|defined) *[(]?TRIREME_WITH_' --include=*.[ch]pp --include=*.cu trireme cli tests bench examples"
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(tools.features PROPERTIES LABELS unit)
# With the clone's path in it, a file is compiled again in another clone instead of coming from the compiler cache.
if(NOT TRIREME_SANITIZE)  # they note where each global variable is declared
  add_test(NAME tools.ccache COMMAND bash -c
    "! grep -aoE -m1 '${PROJECT_SOURCE_DIR}/(trireme|tests)/[^ ]*pp' $<TARGET_FILE:trireme> $<TARGET_FILE:test_base>")
  set_tests_properties(tools.ccache PROPERTIES LABELS unit)
endif()
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND)
  add_test(NAME tools.layers COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/layers.py ${PROJECT_SOURCE_DIR})
  set_tests_properties(tools.layers PROPERTIES LABELS unit)
  add_test(NAME tools.tidy.script COMMAND ${CMAKE_CURRENT_LIST_DIR}/tidy_test.sh ${PROJECT_SOURCE_DIR})
  set_tests_properties(tools.tidy.script PROPERTIES LABELS unit TIMEOUT 60 SKIP_RETURN_CODE 77)
  if(NOT TRIREME_SANITIZE)  # once is enough
    add_test(NAME tools.tidy COMMAND ${PROJECT_SOURCE_DIR}/tools/tidy --build ${PROJECT_BINARY_DIR})
    set_tests_properties(tools.tidy PROPERTIES LABELS tidy TIMEOUT 600 PROCESSORS 2 SKIP_RETURN_CODE 77)
  endif()
endif()
# Versions of clang-format differ in what they make of the same file.
find_program(CLANG_FORMAT clang-format)
if(CLANG_FORMAT)
  execute_process(COMMAND ${CLANG_FORMAT} --version OUTPUT_VARIABLE clang_format_version)
  if(clang_format_version MATCHES "version 14")
    add_test(NAME tools.format COMMAND ${PROJECT_SOURCE_DIR}/tools/format --check)
    set_tests_properties(tools.format PROPERTIES LABELS unit TIMEOUT 120)
  endif()
endif()
set_tests_properties(tools.setup PROPERTIES LABELS unit TIMEOUT 30)
add_test(NAME tools.testcluster
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/testcluster_test.sh ${PROJECT_SOURCE_DIR}/tools/testcluster)
set_tests_properties(tools.testcluster PROPERTIES LABELS cluster TIMEOUT 180 SKIP_RETURN_CODE 77
  RUN_SERIAL ON)  # it measures rates
