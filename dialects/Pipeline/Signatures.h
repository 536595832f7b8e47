//===- Signatures.h - What functions of tasks stand for ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes the attribute `pipeline.signature` (see SignatureAttr): a pass that
// makes or changes the function of a task signs it. Rule C38 compares calls
// with it.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_PIPELINE_SIGNATURES_H
#define PENSTOCK_DIALECTS_PIPELINE_SIGNATURES_H

#include "dialects/Pipeline/Pipeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace penstock::pipeline {

/// Where the values of tasks come from and go to, as terms of signatures.
class ValueTerms {
public:
  explicit ValueTerms(mlir::ModuleOp module);

  /// The term of a value of a task: what made it, through all channels that it
  /// came by; unit if that cannot be said.
  mlir::Attribute getTerm(mlir::Value value);
  /// The variables that a result is written to, and the sinks and the messages
  /// about a variable that it is put to.
  llvm::SmallVector<mlir::FlatSymbolRefAttr> getTargets(mlir::Value result);
  /// The op that put what a value was taken from last, for messages; else the
  /// value's own.
  mlir::Operation *getOrigin(mlir::Value value);
  mlir::SymbolTable &getSymbols() { return symbols; }

private:
  /// Returns the value that was put where this one is taken, or null.
  mlir::Value getPut(mlir::Value taken, PutOp *put = nullptr);

  mlir::SymbolTable symbols;
  /// The put of each channel, in training (0) and evaluation (1).
  llvm::DenseMap<std::pair<mlir::Attribute, int>, PutOp> puts;
};

/// Null if there is none.
SignatureAttr getSignature(mlir::func::FuncOp function);
void setSignature(mlir::func::FuncOp function,
                  llvm::ArrayRef<mlir::Attribute> inputs,
                  llvm::ArrayRef<mlir::Attribute> results);
/// Returns true if arguments stand for roles, as those of functions that
/// several calls share, or for what computes numbers.
bool standsForRoles(SignatureAttr signature);
/// Signs, or signs anew, all functions that tasks call for their own values;
/// those that stand for roles are left as they are. Of equal tasks, one
/// function has for each argument a term of each call; without arguments, for
/// each result.
void signFunctions(mlir::ModuleOp module);
/// Returns true if one call names the function; signatures of others may, too.
bool isCalledOnce(mlir::func::FuncOp function);
/// After a function got an argument, of which nothing is said.
void insertTerm(mlir::func::FuncOp function, unsigned argument);

/// The name of the number that predictions over so many steps move by.
std::string getRateName(double steps);
/// The name of the counter of a task.
inline constexpr llvm::StringLiteral kCounterName = "counter";

} // namespace penstock::pipeline

#endif // PENSTOCK_DIALECTS_PIPELINE_SIGNATURES_H
