// Tensors of a network that is cut over the workers of a pipeline: brought together on the first worker, for
// checkpoints and evaluation, and given out by it, to resume.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/runtime/variable_store.hpp"
#include "trireme/train/pipeline_config.hpp"
#include "trireme/train/safetensors.hpp"

namespace trireme::train {

// Collective. On the first worker all tensors, in the order of the graph's stages; elsewhere nothing.
std::vector<NamedTensor> gather_tensors(comm::Communicator& workers, const PipelineConfig& pipeline,
                                        std::vector<NamedTensor> own);

// Collective: the first worker reads what each worker asks for by name and type, and sends it.
std::vector<NamedTensor> give_out_tensors(comm::Communicator& workers,
                                          const std::vector<std::pair<std::string, TensorType>>& wanted,
                                          const std::function<HostTensor(const std::string&)>& read);

}  // namespace trireme::train
