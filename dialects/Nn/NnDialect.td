//===- NnDialect.td - The nn dialect -----------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect alone, for files that define less than all of its ops.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_NN_NNDIALECT_TD
#define PENSTOCK_DIALECTS_NN_NNDIALECT_TD

include "mlir/IR/OpBase.td"

def Nn_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::penstock::nn";
  let summary = "Composite operations that are differentiated as a whole";
  let useDefaultAttributePrinterParser = 1;
  // What mode-dependent ops expand to.
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // PENSTOCK_DIALECTS_NN_NNDIALECT_TD
