//===- DifferentiableOpInterface.td - Derivative rules -----*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface by which the reverse mode sees an op. Upstream ops get it by
// external models, see registerAutodiffModels.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_AUTODIFF_DIFFERENTIABLEOPINTERFACE_TD
#define PENSTOCK_AUTODIFF_DIFFERENTIABLEOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::penstock";
  let description = [{
    An op with a derivative rule. An op without this interface is an error as
    soon as a cotangent reaches one of its results: never a zero gradient.
  }];
  let methods = [
    InterfaceMethod<[{
        Adds to the cotangents of the active operands what the cotangents of the
        results contribute; reports at the op when that is not possible.
      }], "::llvm::LogicalResult", "pullBack",
      (ins "::penstock::Pullback &":$pullback)>,
    InterfaceMethod<[{
        Whether the result has a derivative with respect to the operand; both
        are of a float element type.
      }], "bool", "carriesGradient",
      (ins "::mlir::Value":$operand, "::mlir::Value":$result), "",
      [{ return true; }]>
  ];
}

#endif // PENSTOCK_AUTODIFF_DIFFERENTIABLEOPINTERFACE_TD
