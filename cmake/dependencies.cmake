# Everything comes from the system's packages (tools/setup installs them). Optional ones are left out cleanly.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)

find_package(dnnl QUIET)  # optional: without it only the reference backend is built (a GPU machine)
find_package(GTest QUIET)
