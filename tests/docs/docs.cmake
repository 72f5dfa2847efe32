# The README's commands and the example programs run; other pages' commands are understood, and their links lead somewhere.
add_test(NAME Docs.Pages COMMAND ${CMAKE_CURRENT_LIST_DIR}/pages.sh ${PROJECT_SOURCE_DIR})
set_tests_properties(Docs.Pages PROPERTIES LABELS unit TIMEOUT 60)
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND)
  add_test(NAME Docs.CommandLines COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/command_lines.py
                                          ${PROJECT_SOURCE_DIR} $<TARGET_FILE:trireme_cli>)
  add_test(NAME Docs.Programs COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/programs.py ${PROJECT_SOURCE_DIR}
                                      ${CMAKE_CXX_COMPILER})
  set_tests_properties(Docs.CommandLines Docs.Programs PROPERTIES LABELS unit TIMEOUT ${timeout})
endif()
add_test(NAME Readme.Commands COMMAND ${CMAKE_CURRENT_LIST_DIR}/readme_commands.sh ${PROJECT_SOURCE_DIR}/README.md
                                      $<TARGET_FILE:trireme_cli>)
set_tests_properties(Readme.Commands PROPERTIES LABELS slow TIMEOUT 300)

if(TRIREME_BUILD_EXAMPLES)
  add_test(NAME Example.LinearRegressionEndsNearThree COMMAND example_linear_regression)
  set_tests_properties(Example.LinearRegressionEndsNearThree PROPERTIES LABELS unit TIMEOUT 60 PASS_REGULAR_EXPRESSION
                                                                                         "w = (2\\.[6-9]|3\\.[0-4])")
  add_test(NAME Example.CustomNetworkHasAllCommands
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/custom_network_example.sh $<TARGET_FILE:example_custom_network>
            $<TARGET_FILE:trireme_cli>)
  set_tests_properties(Example.CustomNetworkHasAllCommands PROPERTIES LABELS distributed TIMEOUT 240 PROCESSORS 2)
  # One process and two end with the same loss.
  add_test(NAME Example.DistributedTrainsLikeOne
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/same_output.sh $<TARGET_FILE:example_distributed> $<TARGET_FILE:trireme_cli>)
  set_tests_properties(Example.DistributedTrainsLikeOne PROPERTIES LABELS distributed TIMEOUT 120 SKIP_RETURN_CODE 77)
  add_test(NAME Example.MnistLearnsInEveryMode
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/mnist_example.sh $<TARGET_FILE:example_mnist> $<TARGET_FILE:trireme_cli>
            $<$<BOOL:${TRIREME_WITH_MPI}>:mpi> $<$<BOOL:${TRIREME_WITH_GRPC}>:grpc>
    COMMAND_EXPAND_LISTS)
  set_tests_properties(Example.MnistLearnsInEveryMode PROPERTIES LABELS distributed TIMEOUT 240 PROCESSORS 2)
endif()
