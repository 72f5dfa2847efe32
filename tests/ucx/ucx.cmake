# UCX between real processes.
if(NOT TRIREME_WITH_UCX)
  return()
endif()

# A rank is killed while others talk to it: over shared memory, over TCP, and between nodes, where UCX itself notices.
add_executable(ucx_lost_rank ucx/ucx_lost_rank.cpp ucx/socket_control.cpp)
target_link_libraries(ucx_lost_rank PRIVATE trireme::trireme trireme_warnings)
add_test(NAME ucx.lost_rank COMMAND ucx_lost_rank told)
add_test(NAME ucx.lost_rank.tcp COMMAND ${CMAKE_COMMAND} -E env UCX_TLS=tcp,self $<TARGET_FILE:ucx_lost_rank> told)
add_test(NAME ucx.lost_rank.noticed COMMAND ucx_lost_rank untold)
set_tests_properties(ucx.lost_rank ucx.lost_rank.tcp ucx.lost_rank.noticed PROPERTIES
  LABELS distributed TIMEOUT 120 PROCESSORS 2)

# A rank waits for another that does not look at its connections.
add_executable(ucx_idle_wait ucx/ucx_idle_wait.cpp ucx/socket_control.cpp)
target_link_libraries(ucx_idle_wait PRIVATE trireme::trireme trireme_warnings)
add_test(NAME ucx.idle_wait COMMAND ${CMAKE_COMMAND} -E env UCX_TLS=tcp,self $<TARGET_FILE:ucx_idle_wait>)
set_tests_properties(ucx.idle_wait PROPERTIES LABELS distributed TIMEOUT 120)

if(NOT TRIREME_WITH_MPI)
  return()
endif()
add_executable(ucx_suite ucx/ucx_suite.cpp comm/communicator_suite.cpp comm/all_reduce_check.cpp)
target_include_directories(ucx_suite PRIVATE comm)
target_link_libraries(ucx_suite PRIVATE trireme::trireme trireme_warnings)
foreach(ranks 1 2 3 4)
  add_mpi_test(ucx.suite.${ranks} ${ranks} $<TARGET_FILE:ucx_suite>)
endforeach()
add_mpi_test(ucx.suite.tcp 3 ${CMAKE_COMMAND} -E env UCX_TLS=tcp,self $<TARGET_FILE:ucx_suite>)
