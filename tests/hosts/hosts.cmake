# The tests on the hosts of test clusters: each with a cluster of its own, except Slurm's, whose cluster takes so long to
# start that they share one, in one process.
if(NOT TARGET test_hosts)
  return()
endif()
set(properties LABELS cluster ENVIRONMENT XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/test-cache)
gtest_discover_tests(test_hosts TEST_FILTER "-NetHosts.*:LaunchSlurm.*" TEST_LIST launches DISCOVERY_TIMEOUT 60
  PROPERTIES ${properties} TIMEOUT 120)
gtest_discover_tests(test_hosts TEST_FILTER "NetHosts.*" TEST_LIST rates DISCOVERY_TIMEOUT 60
  PROPERTIES ${properties} TIMEOUT 120 RUN_SERIAL ON)  # it measures
add_test(NAME LaunchSlurm COMMAND test_hosts --gtest_filter=LaunchSlurm.*)
set_tests_properties(LaunchSlurm PROPERTIES ${properties} TIMEOUT 300 COST 60  # the longest begins first
  SKIP_REGULAR_EXPRESSION "PASSED  \\] 0 tests\\.\n\\[  SKIPPED")
