//===- WriteModel.h - The model with the weights of a checkpoint -*- C++ -*-==//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As --save of a run writes it: the file byte for byte, but for the weights.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TOOLS_PENSTOCK_CHECKPOINT_WRITEMODEL_H
#define PENSTOCK_TOOLS_PENSTOCK_CHECKPOINT_WRITEMODEL_H

#include "runtime/io/CheckpointFolder.h"

namespace penstock::runtime {

/// Writes `model` with the weights and statistics of a whole checkpoint to
/// `output`: the averages of weights that have any, unless `isRaw`.
Error writeModel(const Checkpoint &checkpoint, const std::string &model,
                 const std::string &output, bool isRaw);

} // namespace penstock::runtime

#endif // PENSTOCK_TOOLS_PENSTOCK_CHECKPOINT_WRITEMODEL_H
