//===- Rules.h - Attaching derivative rules ---------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the files with rules share.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_AUTODIFF_RULES_H
#define PENSTOCK_LIB_AUTODIFF_RULES_H

#include "dialects/Nn/Nn.h"
#include "penstock/Autodiff/Pullback.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/DialectRegistry.h"

namespace penstock {

/// An external model of the interface for Op: the rule is a function.
template <typename Op, llvm::LogicalResult (*rule)(Op, Pullback &)>
struct RuleModel
    : DifferentiableOpInterface::ExternalModel<RuleModel<Op, rule>, Op> {
  llvm::LogicalResult pullBack(mlir::Operation *op, Pullback &pullback) const {
    return rule(llvm::cast<Op>(op), pullback);
  }
};

/// The rule of ops with indexing maps and a scalar body.
llvm::LogicalResult pullBackStructured(mlir::linalg::LinalgOp op,
                                       Pullback &pullback);
/// Returns true if a result of such an op depends on an operand with a
/// derivative.
bool structuredCarriesGradient(mlir::linalg::LinalgOp op, mlir::Value operand,
                               mlir::Value result);

/// Those of a softmax and of its logarithm.
llvm::LogicalResult pullBackSoftmax(mlir::linalg::SoftmaxOp op,
                                    Pullback &pullback);
llvm::LogicalResult pullBackLogSoftmax(nn::LogSoftmaxOp op, Pullback &pullback);

/// Where the backward reads normalized values element by element only, it takes
/// the operand of the normalization, and normalizes again on the way.
void keepOperandsOfNormalizations(mlir::Block &forward, Pullback &pullback);

void registerIndexRules(mlir::DialectRegistry &registry);
void registerLinalgRules(mlir::DialectRegistry &registry);
void registerNnRules(mlir::DialectRegistry &registry);
void registerConvRules(mlir::DialectRegistry &registry);
void registerNormalizeRules(mlir::DialectRegistry &registry);
void registerPoolRules(mlir::DialectRegistry &registry);
void registerTensorRules(mlir::DialectRegistry &registry);

} // namespace penstock

#endif // PENSTOCK_LIB_AUTODIFF_RULES_H
