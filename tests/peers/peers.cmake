# The comparison with other frameworks, on a network that takes milliseconds. Skipped where there is no PyTorch.
if(EXISTS /usr/bin/python3)
  add_test(NAME peers.compare COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/compare_test.py
                                      ${PROJECT_SOURCE_DIR}/bench/peers $<TARGET_FILE:trireme_cli>)
  # It may have the machine for itself only: two teams of threads on the same cores are slow beyond measure.
  set_tests_properties(peers.compare PROPERTIES LABELS slow TIMEOUT 300 SKIP_RETURN_CODE 77 RUN_SERIAL ON)
endif()
