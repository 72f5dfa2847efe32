# bench/, on a network that takes milliseconds.
if(EXISTS /usr/bin/python3)
  set(peers_python /usr/bin/python3)
  if(EXISTS ${PROJECT_SOURCE_DIR}/.venv-peers/bin/python)  # made by tools/setup --peers: has TensorFlow
    set(peers_python ${PROJECT_SOURCE_DIR}/.venv-peers/bin/python)
  endif()
  # Skipped where there is no PyTorch, or no TensorFlow.
  add_test(NAME peers.compare COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/compare_test.py
                                      ${PROJECT_SOURCE_DIR}/bench/peers $<TARGET_FILE:trireme_cli>)
  add_test(NAME peers.tensorflow COMMAND ${peers_python} ${CMAKE_CURRENT_LIST_DIR}/tensorflow_test.py
                                         ${PROJECT_SOURCE_DIR}/bench/peers)
  add_test(NAME peers.tfrecord COMMAND ${peers_python} ${CMAKE_CURRENT_LIST_DIR}/tfrecord_test.py
                                       $<TARGET_FILE:trireme_cli>)
  if(TRIREME_WITH_PROTOBUF)  # what is exported, in ONNX Runtime, PyTorch and TensorBoard, where these are
    add_executable(export_case ${CMAKE_CURRENT_LIST_DIR}/export_case.cpp)
    target_link_libraries(export_case PRIVATE trireme::trireme trireme_warnings)
    add_test(NAME peers.export COMMAND ${peers_python} ${CMAKE_CURRENT_LIST_DIR}/export_test.py
      ${PROJECT_SOURCE_DIR}/bench/peers $<TARGET_FILE:trireme_cli> $<TARGET_FILE:export_case>
      ${PROJECT_SOURCE_DIR}/tests/onnx)
    set_tests_properties(peers.export PROPERTIES LABELS slow TIMEOUT 300 SKIP_RETURN_CODE 77 RUN_SERIAL ON)
  endif()
  # They may have the machine for themselves only: two teams of threads on the same cores are slow beyond measure.
  set_tests_properties(peers.compare peers.tensorflow peers.tfrecord
                       PROPERTIES LABELS slow TIMEOUT 300 SKIP_RETURN_CODE 77 RUN_SERIAL ON)
  set_tests_properties(peers.compare PROPERTIES TIMEOUT 600)  # starts PyTorch some twenty times
endif()
