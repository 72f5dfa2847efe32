// Everything a program needs that trains networks: a network as a value, a job to join, a trainer to run, or all of
// Trireme's commands with one's own networks. docs/your-own-network.md shows how; the headers say the rest.
#pragma once

#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/command_line.hpp"
#include "trireme/data/augmentations.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/data/pipeline.hpp"
#include "trireme/graph/functions.hpp"
#include "trireme/models/layers.hpp"
#include "trireme/models/model.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/parallel/replicas.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/train/export.hpp"
#include "trireme/train/job.hpp"
#include "trireme/train/trainer.hpp"
