// NCCL's functions, looked up in its library at the first call.
#include <nccl.h>

#include "trireme/backend/cuda/library.hpp"
#include "trireme/backend/cuda/nccl_group.hpp"

namespace {

using trireme::cuda::pass_on;

const trireme::cuda::Library& nccl_library() {
  static const trireme::cuda::Library library("libnccl.so.2", "install NCCL 2");
  return library;
}

}  // namespace

namespace trireme::cuda {

bool has_nccl() { return nccl_library().is_there(); }

}  // namespace trireme::cuda

extern "C" {

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return pass_on<&ncclAllReduce>(nccl_library(), "ncclAllReduce", sendbuff, recvbuff, count, datatype, op, comm,
                                 stream);
}

ncclResult_t ncclCommAbort(ncclComm_t comm) { return pass_on<&ncclCommAbort>(nccl_library(), "ncclCommAbort", comm); }

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return pass_on<&ncclCommDestroy>(nccl_library(), "ncclCommDestroy", comm);
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return pass_on<&ncclCommInitRank>(nccl_library(), "ncclCommInitRank", comm, nranks, commId, rank);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return pass_on<&ncclCommGetAsyncError>(nccl_library(), "ncclCommGetAsyncError", comm, asyncError);
}

const char* ncclGetErrorString(ncclResult_t result) {
  return pass_on<&ncclGetErrorString>(nccl_library(), "ncclGetErrorString", result);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  return pass_on<&ncclGetUniqueId>(nccl_library(), "ncclGetUniqueId", uniqueId);
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  return pass_on<&ncclRedOpCreatePreMulSum>(nccl_library(), "ncclRedOpCreatePreMulSum", op, scalar, datatype, residence,
                                            comm);
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return pass_on<&ncclRedOpDestroy>(nccl_library(), "ncclRedOpDestroy", op, comm);
}

}  // extern "C"
