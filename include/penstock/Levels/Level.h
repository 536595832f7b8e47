//===- Level.h - The levels of a program ------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model flows down these levels and never back up. The level of a module is
// told from its content, so that a printed program can enter anywhere.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LEVELS_LEVEL_H
#define PENSTOCK_LEVELS_LEVEL_H

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace penstock {

enum class Level { Onnx, Graph, Stages, Training, Schedule, Program, Llvm };

/// "onnx", "graph", ...
llvm::StringRef getLevelName(Level level);
/// The level of that name.
std::optional<Level> parseLevel(llvm::StringRef name);

/// The level that the module is at. A program of one stage that is not
/// differentiated yet counts as `graph`: being cut into one stage adds nothing.
Level detectLevel(mlir::ModuleOp module);

} // namespace penstock

#endif // PENSTOCK_LEVELS_LEVEL_H
