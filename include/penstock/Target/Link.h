//===- Link.h - Executables ------------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last step for every kind of device: objects and the runtime become an
// executable.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TARGET_LINK_H
#define PENSTOCK_TARGET_LINK_H

#include "mlir/IR/Location.h"

#include <string>

namespace penstock {

/// Links `objects` and `libraries` (files, or flags such as -lm) into the
/// executable `output` with the machine's C++ driver. Emits an error at `loc`
/// when there is none or it fails; leaves no partial output.
mlir::LogicalResult linkExecutable(llvm::ArrayRef<std::string> objects,
                                   llvm::StringRef output,
                                   llvm::ArrayRef<std::string> libraries,
                                   mlir::Location loc);

} // namespace penstock

#endif // PENSTOCK_TARGET_LINK_H
