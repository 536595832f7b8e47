//===- ModeDependentOpInterface.td - Training or not -------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface of ops that mean one thing in training and another in
// evaluation: they stay whole until tasks are derived.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_NN_MODEDEPENDENTOPINTERFACE_TD
#define PENSTOCK_DIALECTS_NN_MODEDEPENDENTOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def ModeDependentOpInterface : OpInterface<"ModeDependentOpInterface"> {
  let cppNamespace = "::penstock::nn";
  let description = [{
    An op whose meaning depends on whether the model trains. It is expanded in
    inference form where evaluate tasks are derived, and in training form before
    the forward tasks are differentiated. Both emit ops at the builder and give
    one value per result; they report at the op when that is not possible.
  }];
  let methods = [
    InterfaceMethod<"The values that replace the results when the model does "
                    "not train.",
      "::llvm::LogicalResult", "expandForInference",
      (ins "::mlir::OpBuilder &":$builder,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$results)>,
    InterfaceMethod<"The values that replace the results when it trains; what "
                    "else changes is said to the context.",
      "::llvm::LogicalResult", "expandForTraining",
      (ins "::mlir::OpBuilder &":$builder,
           "::penstock::nn::TrainingContext &":$context,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$results)>
  ];
}

#endif // PENSTOCK_DIALECTS_NN_MODEDEPENDENTOPINTERFACE_TD
