//===- HostFeatures.h - Is this the CPU that code was compiled for? *- C++
//-*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares LLVM's feature list of the program with what cpuid says, so that a
// program on the wrong machine ends in a sentence, not in SIGILL.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_HOSTFEATURES_H
#define PENSTOCK_RUNTIME_DEVICE_HOSTFEATURES_H

#include "runtime/support/Error.h"

namespace penstock::runtime {

/// Fails where this machine lacks a feature that the code of a device needs.
Error checkFeatures(const penstock_device_descriptor &device);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_HOSTFEATURES_H
