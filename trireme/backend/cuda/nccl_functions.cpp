// NCCL's functions, found in its library when they are first called.
#include <nccl.h>

#include "trireme/backend/cuda/library.hpp"
#include "trireme/backend/cuda/nccl_group.hpp"

namespace {

using trireme::cuda::pass_on;

const trireme::cuda::Library& library() {
  static const trireme::cuda::Library library("libnccl.so.2", "install NCCL 2");
  return library;
}

}  // namespace

namespace trireme::cuda {

bool has_nccl() { return library().is_there(); }

}  // namespace trireme::cuda

extern "C" {

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return pass_on<&ncclAllReduce>(library(), "ncclAllReduce", sendbuff, recvbuff, count, datatype, op, comm, stream);
}

ncclResult_t ncclCommAbort(ncclComm_t comm) { return pass_on<&ncclCommAbort>(library(), "ncclCommAbort", comm); }

ncclResult_t ncclCommDestroy(ncclComm_t comm) { return pass_on<&ncclCommDestroy>(library(), "ncclCommDestroy", comm); }

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return pass_on<&ncclCommInitRank>(library(), "ncclCommInitRank", comm, nranks, commId, rank);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return pass_on<&ncclCommGetAsyncError>(library(), "ncclCommGetAsyncError", comm, asyncError);
}

const char* ncclGetErrorString(ncclResult_t result) {
  return pass_on<&ncclGetErrorString>(library(), "ncclGetErrorString", result);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  return pass_on<&ncclGetUniqueId>(library(), "ncclGetUniqueId", uniqueId);
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  return pass_on<&ncclRedOpCreatePreMulSum>(library(), "ncclRedOpCreatePreMulSum", op, scalar, datatype, residence,
                                            comm);
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return pass_on<&ncclRedOpDestroy>(library(), "ncclRedOpDestroy", op, comm);
}

}  // extern "C"
