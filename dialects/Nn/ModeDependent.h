//===- ModeDependent.h - Ops that training changes --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an op with ModeDependentOpInterface may ask of the forward task that it
// is expanded in: the number of the microbatch, knobs of the run, and state.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_NN_MODEDEPENDENT_H
#define PENSTOCK_DIALECTS_NN_MODEDEPENDENT_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

namespace penstock::nn {

class TrainingContext {
public:
  virtual ~TrainingContext();

  /// Returns true if normalizations use their stored statistics in training,
  /// too.
  virtual bool freezesStatistics() const = 0;
  /// The number of the microbatch from the start of training on, an index: a
  /// scalar argument of the function. The backward function gets its own.
  virtual mlir::Value getMicrobatch() = 0;
  /// Returns the seed of the run's random numbers, an i64: a scalar argument of
  /// the function.
  virtual mlir::Value getSeed() = 0;
  /// Returns the value of `state` at this point of the forward: `state` itself,
  /// or the value that an earlier op has left.
  virtual mlir::Value getState(mlir::Value state) = 0;
  /// Leaves `next` in the variable that `state` is read from. Without effect
  /// when that is no variable, or a frozen one.
  virtual void setState(mlir::Value state, mlir::Value next) = 0;
};

} // namespace penstock::nn

#include "dialects/Nn/ModeDependentOpInterface.h.inc"

#endif // PENSTOCK_DIALECTS_NN_MODEDEPENDENT_H
