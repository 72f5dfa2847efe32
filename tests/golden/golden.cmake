# Losses of short trainings in several modes, on the reference backend, against those that earlier builds have given.
# With other options the compiler rounds otherwise.
if(EXISTS /usr/bin/python3 AND TRIREME_WITH_MPI AND TRIREME_WITH_GRPC AND NOT TRIREME_SANITIZE)
  add_test(NAME golden.losses COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/golden.py check
                                      $<TARGET_FILE:trireme_cli> ${CMAKE_CURRENT_LIST_DIR}/losses.json)
  set_tests_properties(golden.losses PROPERTIES LABELS distributed TIMEOUT 300)
endif()
