//===- Finite.h - Values that are no numbers --------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_FINITE_H
#define PENSTOCK_RUNTIME_IO_FINITE_H

#include "penstock/abi.h"

namespace penstock::runtime {

/// Returns true if none of the elements is infinite or not a number.
bool areFinite(const penstock_tensor &type, const char *values);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_FINITE_H
