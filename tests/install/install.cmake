# The installed package as another project sees it: install into a folder of the build, configure, build and run the
# consumer against it, remove the folder.
set(prefix ${PROJECT_BINARY_DIR}/install-test)

add_test(NAME install.tree COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${prefix}/tree)
add_test(NAME install.consumer COMMAND ${CMAKE_CTEST_COMMAND}
  --build-and-test ${CMAKE_CURRENT_LIST_DIR}/consumer ${prefix}/consumer --build-generator ${CMAKE_GENERATOR}
  --build-options -DCMAKE_PREFIX_PATH=${prefix}/tree -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
  --test-command consumer)
add_test(NAME install.binary COMMAND ${prefix}/tree/${CMAKE_INSTALL_BINDIR}/trireme --version)
add_test(NAME install.clean COMMAND ${CMAKE_COMMAND} -E rm -rf ${prefix})

set_tests_properties(install.tree PROPERTIES FIXTURES_SETUP installed)
set_tests_properties(install.consumer install.binary PROPERTIES FIXTURES_REQUIRED installed)
set_tests_properties(install.clean PROPERTIES FIXTURES_CLEANUP installed)
set_tests_properties(install.tree install.consumer install.binary install.clean PROPERTIES LABELS slow TIMEOUT 120)
