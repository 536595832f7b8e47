//===- ArgumentAttributes.h - Attributes of all arguments ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function of n arguments whose attributes are set one by one takes n lists
// of n, which the context keeps.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_PIPELINE_ARGUMENTATTRIBUTES_H
#define PENSTOCK_DIALECTS_PIPELINE_ARGUMENTATTRIBUTES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace penstock::pipeline {

/// Lets `change` edit the attributes of each argument, and sets them all.
void changeArgAttrs(
    mlir::func::FuncOp function,
    llvm::function_ref<void(unsigned, mlir::NamedAttrList &)> change);

} // namespace penstock::pipeline

#endif // PENSTOCK_DIALECTS_PIPELINE_ARGUMENTATTRIBUTES_H
