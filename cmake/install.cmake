# `cmake --install`: the binary, the library, its headers, and the package that find_package(trireme) finds.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/trireme)

install(TARGETS trireme EXPORT triremeTargets)
install(TARGETS trireme_cli)
# They are in the binary too; as files they are examples for plans of one's own.
install(DIRECTORY plans DESTINATION ${CMAKE_INSTALL_DATADIR}/trireme)
# The scripts that `trireme compare` starts, which it finds beside itself: in the build by a link.
install(DIRECTORY bench/peers DESTINATION ${CMAKE_INSTALL_DATADIR}/trireme FILES_MATCHING PATTERN "*.py")
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/trireme)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/bench/peers ${PROJECT_BINARY_DIR}/share/trireme/peers SYMBOLIC)
# Made by the program, which knows its commands and options.
if(NOT CMAKE_CROSSCOMPILING)
  set(bash_completions ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  set(zsh_completions ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(CODE "
    set(program \"$<TARGET_FILE:trireme_cli>\")
    set(prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
    file(MAKE_DIRECTORY \"\${prefix}/${bash_completions}\" \"\${prefix}/${zsh_completions}\")
    execute_process(COMMAND \"\${program}\" help --man-pages \"\${prefix}/${CMAKE_INSTALL_MANDIR}/man1\"
      COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND \"\${program}\" completion bash
      OUTPUT_FILE \"\${prefix}/${bash_completions}/trireme\" COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND \"\${program}\" completion zsh
      OUTPUT_FILE \"\${prefix}/${zsh_completions}/_trireme\" COMMAND_ERROR_IS_FATAL ANY)")
endif()
# What trireme/trireme.hpp includes, directly or not, and the exporter of graphs of one's own: nothing else is public.
function(find_public_headers header found)
  if(header IN_LIST ${found})
    return()
  endif()
  set(all ${${found}} ${header})
  file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^#include \"trireme/")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include \"(.*)\".*" "\\1" included ${line})
    find_public_headers(${included} all)
  endforeach()
  set(${found} ${all} PARENT_SCOPE)
endfunction()
set(public_headers)
find_public_headers(trireme/trireme.hpp public_headers)
if(TRIREME_WITH_PROTOBUF)
  find_public_headers(trireme/onnx/model_file.hpp public_headers)
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${public_headers})
foreach(header IN LISTS public_headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()

install(EXPORT triremeTargets NAMESPACE trireme:: DESTINATION ${package_folder})
configure_package_config_file(cmake/triremeConfig.cmake.in ${PROJECT_BINARY_DIR}/triremeConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/triremeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/triremeConfig.cmake ${PROJECT_BINARY_DIR}/triremeConfigVersion.cmake
  DESTINATION ${package_folder})
