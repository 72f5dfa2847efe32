# Everything comes from the system's packages (tools/setup installs them). Optional ones are left out cleanly.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)

# The libraries below are optional. Each is used if it is found, unless -DTRIREME_<NAME>=OFF. What comes of it,
# TRIREME_WITH_<NAME>, sources get from trireme/features.hpp.
foreach(library ONEDNN CUDA NCCL MPI PROTOBUF GRPC UCX JPEG ZLIB)
  if(NOT library STREQUAL "CUDA")  # has a third value
    option(TRIREME_${library} "Use this library if it is found" ON)
  endif()
  set(TRIREME_WITH_${library} OFF)
endforeach()

# Warns that a library is missing which was not switched off.
function(warn_without library)
  if(TRIREME_${library} AND NOT TRIREME_WITH_${library})
    message(WARNING ${ARGN})
  endif()
endfunction()

# oneDNN: without it only the reference backend is built. Debian's package of it stops the configuration where OpenCL's
# files (ocl-icd-opencl-dev) are missing, so these are looked for first.
if(TRIREME_ONEDNN)
  find_package(OpenCL QUIET)
  if(OpenCL_FOUND)
    find_package(dnnl QUIET)
    set(TRIREME_WITH_ONEDNN ${dnnl_FOUND})
  endif()
endif()
warn_without(ONEDNN
  "oneDNN was not found: only the slow reference backend is built (packages libdnnl-dev, ocl-icd-opencl-dev)")
# CUDA with cuDNN: without it nothing runs on GPUs. A build with it runs on machines without a GPU too.
# The sanitizers do without: device code has its own (compute-sanitizer).
# Compiling it takes minutes, so by default it is built on machines with a GPU, and for that GPU.
set(TRIREME_CUDA AUTO CACHE STRING "The backend for NVIDIA GPUs, if CUDA and cuDNN are found: ON, OFF, or AUTO: if there is a GPU")
set_property(CACHE TRIREME_CUDA PROPERTY STRINGS AUTO ON OFF)
file(GLOB gpus /dev/nvidia[0-9]*)
if((TRIREME_CUDA STREQUAL "AUTO" AND gpus) OR (TRIREME_CUDA AND NOT TRIREME_CUDA STREQUAL "AUTO"))
  set(wants_cuda ON)
else()
  set(wants_cuda OFF)
endif()
if(wants_cuda AND NOT TRIREME_SANITIZE)
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_FOUND AND NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  endif()
  find_path(CUDNN_INCLUDE_DIR cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib)
  if(CUDAToolkit_FOUND AND CUDNN_INCLUDE_DIR AND CUDNN_LIBRARY)
    set(TRIREME_WITH_CUDA ON)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND gpus AND CMAKE_VERSION VERSION_GREATER_EQUAL 3.24)
      set(CMAKE_CUDA_ARCHITECTURES native)
    elseif(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)  # machine code for Hopper; others compile the rest when they start
      set(CMAKE_CUDA_ARCHITECTURES 75-virtual 90-real)
    endif()
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has C++20
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
  endif()
endif()
# NCCL: without it gradients go from GPU to GPU through the hosts' memory.
if(TRIREME_NCCL AND TRIREME_WITH_CUDA)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib)
  if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
    set(TRIREME_WITH_NCCL ON)
  endif()
endif()
# MPI: without it there is one process. Open MPI and MPICH both do; -DMPI_CXX_COMPILER chooses between them.
if(TRIREME_MPI)
  set(MPI_CXX_SKIP_MPICXX TRUE)  # the old C++ bindings are not used
  find_package(MPI QUIET COMPONENTS CXX)
  set(TRIREME_WITH_MPI ${MPI_CXX_FOUND})
endif()
warn_without(MPI "MPI was not found: several processes cannot work together (packages openmpi-bin, libopenmpi-dev)")
# Protobuf: without it there are no TFRecords, no ONNX files, no files for TensorBoard and no gRPC.
if(TRIREME_PROTOBUF)
  find_package(Protobuf QUIET)
  if(Protobuf_FOUND AND Protobuf_PROTOC_EXECUTABLE)
    set(TRIREME_WITH_PROTOBUF ON)
  endif()
endif()
warn_without(PROTOBUF "protobuf was not found: there are no TFRecords, no exports to ONNX and no parameter servers over "
  "gRPC (packages libprotobuf-dev, protobuf-compiler)")
# gRPC: without it there are no parameter servers. Found by pkg-config: its CMake package is not everywhere.
if(TRIREME_GRPC AND TRIREME_WITH_PROTOBUF)
  pkg_check_modules(grpcpp QUIET IMPORTED_TARGET grpc++)
  set(TRIREME_WITH_GRPC ${grpcpp_FOUND})
  warn_without(GRPC "gRPC was not found: there are no parameter servers over it (package libgrpc++-dev)")
endif()
# UCX: without it, data between parameter servers and workers goes by another protocol.
if(TRIREME_UCX)
  pkg_check_modules(ucx QUIET IMPORTED_TARGET ucx)
  set(TRIREME_WITH_UCX ${ucx_FOUND})
endif()
warn_without(UCX "UCX was not found: no RDMA networks (package libucx-dev)")
# For data sets: without these there are no JPEG images and no .gz files.
if(TRIREME_JPEG)
  find_package(JPEG QUIET)
  set(TRIREME_WITH_JPEG ${JPEG_FOUND})
endif()
if(TRIREME_ZLIB)
  find_package(ZLIB QUIET)
  set(TRIREME_WITH_ZLIB ${ZLIB_FOUND})
endif()
warn_without(JPEG "libjpeg was not found: JPEG images cannot be read (package libjpeg-dev)")
warn_without(ZLIB "zlib was not found: compressed files cannot be read (package zlib1g-dev)")
find_package(GTest QUIET)
