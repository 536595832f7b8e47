//===- Optimizers.h - Optimizers as code that is emitted --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An optimizer is its state, its numbers per update, and scalar code that turns
// a gradient into new state and a step. The step is a function of the state
// alone where the optimizer has a momentum: what predicts weights uses it too.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_OPTIMIZERS_OPTIMIZERS_H
#define PENSTOCK_OPTIMIZERS_OPTIMIZERS_H

#include "penstock/Optimizers/Arithmetic.h"
#include "penstock/Optimizers/OptimizerSpec.h"

#include <memory>
#include <optional>

namespace penstock {

/// A variable that holds state of a parameter: the suffix of its name, which is
/// its name in checkpoints, too.
struct OptimizerState {
  llvm::StringRef name;
  mlir::RankedTensorType type;
};

/// The kind of the variables that hold moving averages of weights.
inline constexpr llvm::StringLiteral kAverageKind = "ema";

/// The results of an update on whole tensors, before it moves each element.
struct UpdateTensors {
  llvm::SmallVector<mlir::Value> states; ///< The new ones.
  /// A step takes one element of each, by a map from its position.
  llvm::SmallVector<mlir::Value> inputs;
  llvm::SmallVector<mlir::AffineMap> maps;
};

class Optimizer {
public:
  explicit Optimizer(const OptimizerSpec &spec) : spec(spec) {}
  virtual ~Optimizer() = default;
  static std::unique_ptr<Optimizer> create(const OptimizerSpec &spec);

  const OptimizerSpec &getSpec() const { return spec; }

  /// The names of the states that have the type of their parameter.
  virtual llvm::SmallVector<llvm::StringRef> getStates() const = 0;
  /// The states of a parameter of this type.
  virtual llvm::SmallVector<OptimizerState>
  listStates(mlir::RankedTensorType type) const;
  /// Returns true if an element of the weight moves by its own state alone.
  /// Else emitTensors comes first, and emitStep has elements of its inputs in
  /// place of the state.
  virtual bool isElementwise() const { return true; }
  virtual UpdateTensors emitTensors(mlir::OpBuilder &builder,
                                    mlir::Location loc, mlir::Value weight,
                                    mlir::Value gradient,
                                    mlir::ValueRange state,
                                    mlir::ValueRange rates) const {
    return {};
  }

  /// Returns true if the numbers of an update are others than the learning
  /// rate.
  virtual bool hasRates() const = 0;
  /// The numbers of update `step` (counted from 1), from the learning rate.
  virtual llvm::SmallVector<mlir::Value>
  emitRates(Arithmetic f, mlir::Value rate, mlir::Value step) const {
    return {rate};
  }

  /// The weight before the step: weight decay apart from the gradient.
  virtual mlir::Value emitDecay(Arithmetic f, mlir::Value weight,
                                mlir::ValueRange rates) const {
    return weight;
  }
  /// The new state from the gradient, which includes the weight decay.
  virtual llvm::SmallVector<mlir::Value>
  emitState(Arithmetic f, mlir::Value weight, mlir::Value &gradient,
            mlir::ValueRange state, mlir::ValueRange rates) const = 0;
  /// Emits the step that is subtracted from the weight, computed from the new
  /// state.
  virtual mlir::Value emitStep(Arithmetic f, mlir::Value gradient,
                               mlir::ValueRange state,
                               mlir::ValueRange rates) const = 0;

  /// Returns true if the state gives the direction of the next step, which
  /// methods that predict weights need.
  virtual bool hasDirection() const = 0;
  /// The direction is a state of its own, this one of getStates().
  virtual std::optional<unsigned> getDirectionState() const {
    return std::nullopt;
  }
  /// Else the numbers of the direction after `step` updates, and the direction:
  /// times the learning rate, it is what the next update would subtract if its
  /// gradient changed nothing.
  virtual llvm::SmallVector<mlir::Value>
  emitDirectionRates(Arithmetic f, mlir::Value step) const {
    return {};
  }
  virtual mlir::Value emitDirection(Arithmetic f, mlir::Value weight,
                                    mlir::ValueRange state,
                                    mlir::ValueRange rates) const {
    return state[*getDirectionState()];
  }

protected:
  OptimizerSpec spec;
};

} // namespace penstock

#endif // PENSTOCK_OPTIMIZERS_OPTIMIZERS_H
