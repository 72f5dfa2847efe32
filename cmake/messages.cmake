# The C++ code of a .proto file, made in the build folder and compiled into a target; its warnings are not ours. It is
# included under the file's own path: "trireme/train/event.pb.h".
# add_messages(TARGET PATH_BELOW_THE_PROJECT)
set(TRIREME_MESSAGES_INCLUDE ${PROJECT_BINARY_DIR}/generated)

function(add_messages target proto)
  string(REGEX REPLACE "\\.proto$" "" stem ${TRIREME_MESSAGES_INCLUDE}/${proto})
  set(sources ${stem}.pb.cc)
  set(headers ${stem}.pb.h)
  file(MAKE_DIRECTORY ${TRIREME_MESSAGES_INCLUDE})
  add_custom_command(OUTPUT ${sources} ${headers}
    COMMAND ${Protobuf_PROTOC_EXECUTABLE} -I ${PROJECT_SOURCE_DIR} --cpp_out=${TRIREME_MESSAGES_INCLUDE}
            ${PROJECT_SOURCE_DIR}/${proto}
    DEPENDS ${PROJECT_SOURCE_DIR}/${proto} COMMENT "Generating the messages of ${proto}" VERBATIM)
  target_sources(${target} PRIVATE ${sources})
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -w)
  target_include_directories(${target} SYSTEM PRIVATE ${TRIREME_MESSAGES_INCLUDE})
endfunction()
