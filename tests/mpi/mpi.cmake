# Communication between real processes, started by the mpirun that belongs to the MPI of this build.
if(NOT TRIREME_WITH_MPI)
  return()
endif()

add_executable(mpi_suite mpi/mpi_suite.cpp comm/communicator_suite.cpp comm/all_reduce_check.cpp)
target_include_directories(mpi_suite PRIVATE comm)
target_link_libraries(mpi_suite PRIVATE trireme::trireme trireme_warnings)

# Open MPI refuses to run more ranks than cores, or as root, unless told; MPICH does not know the first option.
execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE mpirun_version ERROR_QUIET)
set(mpirun ${MPIEXEC_EXECUTABLE})
if(mpirun_version MATCHES "Open MPI|OpenRTE")
  list(APPEND mpirun --oversubscribe --bind-to none)
endif()

function(add_mpi_test name ranks)
  add_test(NAME ${name} COMMAND ${mpirun} -np ${ranks} ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS distributed TIMEOUT 120 PROCESSORS 2
    ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
endfunction()

foreach(ranks 1 2 3 4)
  add_mpi_test(mpi.suite.${ranks} ${ranks} $<TARGET_FILE:mpi_suite>)
endforeach()
# As if counts ended at 1000 bytes: every message that is longer is cut.
add_mpi_test(mpi.suite.cut 3 $<TARGET_FILE:mpi_suite> 1000)
