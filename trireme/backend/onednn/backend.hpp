// The CPU backend: oneDNN's primitives on oneDNN's layouts, and own vectorized kernels if oneDNN has none that fits.
#pragma once

#include <memory>

#include "trireme/backend/tuner.hpp"
#include "trireme/plan/backend.hpp"

namespace trireme::onednn {

std::unique_ptr<Backend> make_backend(TuningOptions tuning = {});

}  // namespace trireme::onednn
