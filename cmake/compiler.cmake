# Language, warnings, sanitizers, ccache: the same for every target of the project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(TRIREME_SANITIZE "" CACHE STRING "Sanitizers for the whole build: empty, 'address,undefined' or 'thread'")

# Several sources are compiled as one: parsing headers is most of the work. Off, each is compiled alone.
option(TRIREME_UNITY "Compile several sources at a time" ON)
set(CMAKE_UNITY_BUILD ${TRIREME_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 6)
if(TRIREME_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # it takes sources that are included for headers
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()

# Paths are relative to the sources, so that what one clone has compiled another finds: ccache makes those of its command
# line relative, the compiler those in __FILE__, which tests have by the hundred.
option(TRIREME_CCACHE "Use ccache if it is found" ON)
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
find_program(CCACHE ccache)
if(TRIREME_CCACHE AND CCACHE)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
endif()

# Sanitized builds go without warnings: on instrumented code these make compiling slower, and the release build has them.
add_library(trireme_warnings INTERFACE)
if(NOT TRIREME_SANITIZE)
  target_compile_options(trireme_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wconversion
      -Werror=undef>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
endif()

if(TRIREME_SANITIZE)
  add_compile_options(-fsanitize=${TRIREME_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(TRIREME_SANITIZE MATCHES "undefined")  # the address sanitizer finds these too, and builds are faster without
    add_compile_options(-fno-sanitize=null,object-size)
  endif()
  add_link_options(-fsanitize=${TRIREME_SANITIZE})
endif()
