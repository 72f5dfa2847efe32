# Everything comes from the system's packages (tools/setup installs them). Optional ones are left out cleanly.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)

# oneDNN is optional: without it only the reference backend is built. Debian's package of it stops the configuration
# where OpenCL's files (ocl-icd-opencl-dev) are missing, so these are looked for first.
find_package(OpenCL QUIET)
if(OpenCL_FOUND)
  find_package(dnnl QUIET)
endif()
if(NOT dnnl_FOUND)
  message(WARNING "oneDNN was not found: only the slow reference backend is built (packages libdnnl-dev, ocl-icd-opencl-dev)")
endif()
# CUDA with cuDNN is optional: without it nothing runs on GPUs. A build with it runs on machines without a GPU too.
# The sanitizers do without: device code has its own (compute-sanitizer).
option(TRIREME_CUDA "Build the backend for NVIDIA GPUs where CUDA and cuDNN are found" ON)
set(TRIREME_WITH_CUDA OFF)
if(TRIREME_CUDA AND NOT TRIREME_SANITIZE)
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_FOUND AND NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  endif()
  find_path(CUDNN_INCLUDE_DIR cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib)
  if(CUDAToolkit_FOUND AND CUDNN_INCLUDE_DIR AND CUDNN_LIBRARY)
    set(TRIREME_WITH_CUDA ON)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)  # machine code for Hopper; others compile the rest when they start
      set(CMAKE_CUDA_ARCHITECTURES 75-virtual 90-real)
    endif()
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has C++20
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
  endif()
endif()
# NCCL is optional: without it gradients go from GPU to GPU through the hosts' memory.
set(TRIREME_WITH_NCCL OFF)
if(TRIREME_WITH_CUDA)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib)
  if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
    set(TRIREME_WITH_NCCL ON)
  endif()
endif()
# MPI is optional: without it there is one process. Open MPI and MPICH both do; -DMPI_CXX_COMPILER chooses between them.
set(MPI_CXX_SKIP_MPICXX TRUE)  # the old C++ bindings are not used
find_package(MPI QUIET COMPONENTS CXX)
if(NOT MPI_CXX_FOUND)
  message(WARNING "MPI was not found: several processes cannot work together (packages openmpi-bin, libopenmpi-dev)")
endif()
# gRPC is optional: without it there are no parameter servers. Found by pkg-config: its CMake package is not everywhere.
find_package(Protobuf QUIET)
pkg_check_modules(grpcpp QUIET IMPORTED_TARGET grpc++)
if(Protobuf_FOUND AND Protobuf_PROTOC_EXECUTABLE AND grpcpp_FOUND)
  set(TRIREME_WITH_GRPC ON)
else()
  set(TRIREME_WITH_GRPC OFF)
  message(WARNING "gRPC was not found: there are no parameter servers over it (packages libgrpc++-dev, "
                  "libprotobuf-dev, protobuf-compiler)")
endif()
# UCX is optional: without it, data between parameter servers and workers goes by another protocol.
pkg_check_modules(ucx QUIET IMPORTED_TARGET ucx)
if(NOT ucx_FOUND)
  message(WARNING "UCX was not found: no RDMA networks (package libucx-dev)")
endif()
# For data sets, each optional: without them there are no JPEG images, no .gz files, no TFRecords.
find_package(JPEG QUIET)
find_package(ZLIB QUIET)
if(Protobuf_FOUND AND Protobuf_PROTOC_EXECUTABLE)
  set(TRIREME_WITH_PROTOBUF ON)
else()
  set(TRIREME_WITH_PROTOBUF OFF)
endif()
if(NOT JPEG_FOUND OR NOT ZLIB_FOUND OR NOT TRIREME_WITH_PROTOBUF)
  message(WARNING "not all formats of data sets can be read (packages libjpeg-dev, zlib1g-dev, libprotobuf-dev, "
                  "protobuf-compiler)")
endif()
find_package(GTest QUIET)
