// cuDNN's functions, looked up in its library at the first call.
#include <cudnn_graph.h>

#include "trireme/backend/cuda/library.hpp"

namespace {

using trireme::cuda::pass_on;

const trireme::cuda::Library& cudnn_library() {
  static const trireme::cuda::Library library("libcudnn.so.9", "install cuDNN 9 for the CUDA of this build");
  return library;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t descriptorType,
                                           cudnnBackendDescriptor_t* descriptor) {
  return pass_on<&cudnnBackendCreateDescriptor>(cudnn_library(), "cudnnBackendCreateDescriptor", descriptorType,
                                                descriptor);
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return pass_on<&cudnnBackendDestroyDescriptor>(cudnn_library(), "cudnnBackendDestroyDescriptor", descriptor);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                  cudnnBackendDescriptor_t variantPack) {
  return pass_on<&cudnnBackendExecute>(cudnn_library(), "cudnnBackendExecute", handle, executionPlan, variantPack);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return pass_on<&cudnnBackendFinalize>(cudnn_library(), "cudnnBackendFinalize", descriptor);
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t attributeName,
                                       cudnnBackendAttributeType_t attributeType, int64_t requestedElementCount,
                                       int64_t* elementCount, void* arrayOfElements) {
  return pass_on<&cudnnBackendGetAttribute>(cudnn_library(), "cudnnBackendGetAttribute", descriptor, attributeName,
                                            attributeType, requestedElementCount, elementCount, arrayOfElements);
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t attributeName,
                                       cudnnBackendAttributeType_t attributeType, int64_t elementCount,
                                       const void* arrayOfElements) {
  return pass_on<&cudnnBackendSetAttribute>(cudnn_library(), "cudnnBackendSetAttribute", descriptor, attributeName,
                                            attributeType, elementCount, arrayOfElements);
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return pass_on<&cudnnCreate>(cudnn_library(), "cudnnCreate", handle);
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return pass_on<&cudnnDestroy>(cudnn_library(), "cudnnDestroy", handle);
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  return pass_on<&cudnnGetErrorString>(cudnn_library(), "cudnnGetErrorString", status);
}

size_t cudnnGetVersion() { return pass_on<&cudnnGetVersion>(cudnn_library(), "cudnnGetVersion"); }

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t streamId) {
  return pass_on<&cudnnSetStream>(cudnn_library(), "cudnnSetStream", handle, streamId);
}

}  // extern "C"
