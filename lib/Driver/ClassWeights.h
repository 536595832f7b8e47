//===- ClassWeights.h - Weights of classes from a file ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file behind --loss=softmax-cross-entropy:class-weights=.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_CLASSWEIGHTS_H
#define PENSTOCK_LIB_DRIVER_CLASSWEIGHTS_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace penstock {

/// Reads a .npy file of floats with one axis. Returns what is wrong with it, or
/// an empty string.
std::string readClassWeights(llvm::StringRef path, std::vector<double> &values);

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_CLASSWEIGHTS_H
