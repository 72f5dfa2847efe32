# The C++ code of a .proto file, made in the build folder and compiled into a target; its warnings are not ours. It is
# included under the file's own path: "trireme/train/event.pb.h". GRPC: with the stubs of its services.
# add_messages(TARGET PATH_BELOW_THE_PROJECT [GRPC])
set(TRIREME_MESSAGES_INCLUDE ${PROJECT_BINARY_DIR}/generated)

function(add_messages target proto)
  cmake_parse_arguments(PARSE_ARGV 2 arg "GRPC" "" "")
  string(REGEX REPLACE "\\.proto$" "" stem ${TRIREME_MESSAGES_INCLUDE}/${proto})
  set(sources ${stem}.pb.cc)
  set(headers ${stem}.pb.h)
  set(plugin "")
  if(arg_GRPC)
    list(APPEND sources ${stem}.grpc.pb.cc)
    list(APPEND headers ${stem}.grpc.pb.h)
    set(plugin --grpc_out=${TRIREME_MESSAGES_INCLUDE} --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN})
  endif()
  file(MAKE_DIRECTORY ${TRIREME_MESSAGES_INCLUDE})
  add_custom_command(OUTPUT ${sources} ${headers}
    COMMAND ${Protobuf_PROTOC_EXECUTABLE} -I ${PROJECT_SOURCE_DIR} --cpp_out=${TRIREME_MESSAGES_INCLUDE} ${plugin}
            ${PROJECT_SOURCE_DIR}/${proto}
    DEPENDS ${PROJECT_SOURCE_DIR}/${proto} COMMENT "Generating the messages of ${proto}" VERBATIM)
  target_sources(${target} PRIVATE ${sources})
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -w)
  target_include_directories(${target} SYSTEM PRIVATE ${TRIREME_MESSAGES_INCLUDE})
endfunction()
