//===- Summands.h - What a group adds up ------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Members of a group have a summand for each replica of their stage, and for
// each of their partial sums.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_PIPELINE_SUMMANDS_H
#define PENSTOCK_DIALECTS_PIPELINE_SUMMANDS_H

#include "dialects/Pipeline/Replicas.h"

namespace penstock::pipeline {

struct Summand {
  enum class Kind {
    Adds,     ///< is added, and becomes the sum
    Receives, ///< becomes the sum
    Resets    ///< is added, and becomes zero
  };
  int64_t device;
  Kind kind;
};

/// The variables of the first member, whose types are those of all.
inline llvm::SmallVector<VariableOp> listSummedVariables(mlir::ModuleOp module,
                                                         GroupOp group) {
  llvm::SmallVector<VariableOp> variables;
  if (!group.getMembers().empty())
    for (auto name : llvm::cast<mlir::ArrayAttr>(group.getMembers()[0])
                         .getAsRange<mlir::FlatSymbolRefAttr>())
      variables.push_back(module.lookupSymbol<VariableOp>(name));
  return variables;
}

/// In the order (stage, replica), which is that of the sum.
inline llvm::SmallVector<Summand> listSummands(mlir::ModuleOp module,
                                               GroupOp group) {
  llvm::SmallVector<Summand> summands;
  for (auto member : group.getMembers().getAsRange<mlir::ArrayAttr>()) {
    auto variable = module.lookupSymbol<VariableOp>(
        llvm::cast<mlir::FlatSymbolRefAttr>(member[0]));
    auto stage = module.lookupSymbol<StageOp>(variable.getStageAttr());
    llvm::ArrayRef<int64_t> devices = *stage.getDevices();
    for (int64_t device : devices)
      for (int64_t part = 0, parts = getParts(variable); part < parts; ++part) {
        bool receives = device != devices.front() && group->hasAttr(kOnceAttr);
        summands.push_back({device, receives   ? Summand::Kind::Receives
                                    : part > 0 ? Summand::Kind::Resets
                                               : Summand::Kind::Adds});
      }
  }
  return summands;
}

} // namespace penstock::pipeline

#endif // PENSTOCK_DIALECTS_PIPELINE_SUMMANDS_H
