# The C++ code of a .proto file, made in the build folder and compiled into a target; its warnings are not ours. It is
# included under the file's own path: "trireme/train/event.pb.h".
# add_messages(TARGET PATH_BELOW_THE_PROJECT)
function(add_messages target proto)
  string(REGEX REPLACE "\\.proto$" "" stem ${TRIREME_GENERATED}/${proto})
  set(sources ${stem}.pb.cc)
  set(headers ${stem}.pb.h)
  add_custom_command(OUTPUT ${sources} ${headers}
    COMMAND ${Protobuf_PROTOC_EXECUTABLE} -I ${PROJECT_SOURCE_DIR} --cpp_out=${TRIREME_GENERATED}
            ${PROJECT_SOURCE_DIR}/${proto}
    DEPENDS ${PROJECT_SOURCE_DIR}/${proto} COMMENT "Generating the messages of ${proto}" VERBATIM)
  target_sources(${target} PRIVATE ${sources})
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -w)
endfunction()
