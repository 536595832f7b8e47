//===- Compare.h - Two checkpoints, bit by bit ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors are compared by their identity, in whatever files they are.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TOOLS_PENSTOCK_CHECKPOINT_COMPARE_H
#define PENSTOCK_TOOLS_PENSTOCK_CHECKPOINT_COMPARE_H

#include "runtime/io/CheckpointFolder.h"

namespace penstock::runtime {

/// Lists what differs, a line for each tensor.
Error compareCheckpoints(const Checkpoint &first, const Checkpoint &second,
                         std::vector<std::string> &differences);

} // namespace penstock::runtime

#endif // PENSTOCK_TOOLS_PENSTOCK_CHECKPOINT_COMPARE_H
