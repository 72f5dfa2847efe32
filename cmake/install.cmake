# `cmake --install`: the binary, the library, its headers, and the package that find_package(trireme) finds.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/trireme)

install(TARGETS trireme EXPORT triremeTargets)
install(TARGETS trireme_cli)
# They are in the binary too; as files they are examples for plans of one's own.
install(DIRECTORY plans DESTINATION ${CMAKE_INSTALL_DATADIR}/trireme)
# The scripts that `trireme compare` starts, which it finds beside itself: in the build by a link.
install(DIRECTORY bench/peers DESTINATION ${CMAKE_INSTALL_DATADIR}/trireme FILES_MATCHING PATTERN "*.py")
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/trireme)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/bench/peers ${PROJECT_BINARY_DIR}/share/trireme/peers SYMBOLIC)
# What is below a backend's own folder is its own business: users get backends from backend/registry.hpp. The same with
# the folders of transports and algorithms: users get communicators from comm/world.hpp and comm/local/run_local.hpp.
install(DIRECTORY trireme DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp" PATTERN "backend/*/*" EXCLUDE
  PATTERN "comm/mpi/*" EXCLUDE PATTERN "comm/grpc/*" EXCLUDE PATTERN "comm/ucx/*" EXCLUDE
  PATTERN "comm/collectives/*" EXCLUDE PATTERN "comm/local/local_*" EXCLUDE
  PATTERN "data/tfrecord/*" EXCLUDE PATTERN "onnx/*" EXCLUDE)
if(TRIREME_WITH_PROTOBUF)
  install(FILES trireme/onnx/model_file.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/trireme/onnx)
endif()

install(EXPORT triremeTargets NAMESPACE trireme:: DESTINATION ${package_folder})
configure_package_config_file(cmake/triremeConfig.cmake.in ${PROJECT_BINARY_DIR}/triremeConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/triremeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/triremeConfig.cmake ${PROJECT_BINARY_DIR}/triremeConfigVersion.cmake
  DESTINATION ${package_folder})
