//===- Passes.td - Lowering passes --------------------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From device programs and kernels to LLVM IR.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_LOWERING_PASSES_TD
#define PENSTOCK_PASSES_LOWERING_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertPipelineToRuntime
    : Pass<"convert-pipeline-to-runtime", "::mlir::ModuleOp"> {
  let summary = "Lower device programs to calls of the runtime";
  let description = [{
    After `pipeline-lower-kernels-cpu`, which gives kernels the device as first
    argument. Slots become addresses, transfers and library products calls, and
    everything that the runtime knows the constant `penstock_program`. A nested
    module (the replay program) becomes a second constant.
  }];
  let options = [
    Option<"cpu", "cpu", "std::string", "\"\"",
           "The processor that the code is for, for the runtime's check">,
    Option<"features", "features", "std::string", "\"\"",
           "Features that it must have, as +avx2,+fma">,
    Option<"method", "method", "std::string", "\"sync\"", "Name to report">,
    Option<"schedule", "schedule", "std::string", "\"\"", "Name to report">,
    Option<"plan", "plan", "std::string", "\"\"",
           "The compiler's report, as JSON text">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect"];
}

def NnExpandComposites : Pass<"nn-expand-composites"> {
  let summary = "Expands softmax and cross-entropy into linalg generics";
  let description = [{
    `linalg.softmax`, `nn.cross_entropy` and `nn.cross_entropy_grad` become
    `linalg.generic` ops in the form that is stable for large logits. Labels are
    compared with column numbers, so labels out of range address nothing; they
    make the loss and the gradient of their row NaN. Labels equal to `ignore` do
    neither and do not count in the mean.

    ```mlir
    %dz = nn.cross_entropy_grad %p, %y, %dl
        : (tensor<5x3xf32>, tensor<5xi64>, tensor<f32>) -> tensor<5x3xf32>
    // becomes
    %f = linalg.generic ... ins(%y, %dl) { ... %dl / 5 ... } : tensor<5xf32>
    %dz = linalg.generic ... ins(%p, %y, %f) {
      ... (%p - select(linalg.index 1 == %y, 1, 0)) * %f ... }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // PENSTOCK_PASSES_LOWERING_PASSES_TD
