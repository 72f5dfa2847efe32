# One program per fuzz_*.cpp: a reader on inputs that are changed at random, always the same ones.
if(has_all_formats)
  file(GLOB targets CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/fuzz_*.cpp)
  foreach(source IN LISTS targets)
    get_filename_component(target ${source} NAME_WE)
    add_executable(${target} ${source} ${CMAKE_CURRENT_LIST_DIR}/mutate_main.cpp)
    target_link_libraries(${target} PRIVATE trireme::trireme trireme_warnings)
    add_test(NAME Fuzz.${target} COMMAND ${target} 10000)
    set_tests_properties(Fuzz.${target} PROPERTIES LABELS unit TIMEOUT 300)
    if(EXISTS /dev/shm)  # each input is a file
      set_tests_properties(Fuzz.${target} PROPERTIES ENVIRONMENT TMPDIR=/dev/shm)
    endif()
  endforeach()
endif()
