//===- Passes.td - Forming and fusing kernels --------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Composites to structured ops, fusion, and the choice of what a vendor library
// computes: the same for every target.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_KERNELS_PASSES_TD
#define PENSTOCK_PASSES_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

// Each kind of device has a pipeline of its own for its kernels.
defvar KernelKindOption =
    Option<"kind", "kind", "std::string", "\"\"",
           "Only functions of targets of this dialect, and those without a "
           "target; empty: all functions">;

def PipelineNarrowProducts
    : Pass<"pipeline-narrow-products", "::mlir::func::FuncOp"> {
  let summary = "Multiplies factors in bf16 that were rounded to it";
  let description = [{
    For targets whose library multiplies bf16 faster. Contractions get factors
    in bf16 and still add in f32. Convolutions that the library takes are in
    bf16 with their result, which a rounding that follows returns as it is; a
    gradient of weights is computed by itself and added to what is there.

    ```mlir
    %x = linalg.generic ... ins(%xr : tensor<5x7xbf16>) { extf }
    %w = linalg.generic ... ins(%wr : tensor<7x11xbf16>) { extf }
    %y = linalg.contract ... ins(%x, %w : tensor<5x7xf32>, tensor<7x11xf32>)
           outs(%z : tensor<5x11xf32>) -> tensor<5x11xf32>
    // becomes
    %y = linalg.contract ... ins(%xr, %wr : tensor<5x7xbf16>, tensor<7x11xbf16>)
           outs(%z : tensor<5x11xf32>) -> tensor<5x11xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NnExpandComposites : Pass<"nn-expand-composites"> {
  let summary = "Expands composites into linalg generics";
  let description = [{
    Normalizations, pooling, and convolutions that the library of the function's
    target has no fast implementation of become loops; other convolutions stay. `linalg.softmax`,
    `nn.log_softmax`, `nn.cross_entropy` and `nn.cross_entropy_grad` become
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
  let options = [
    Option<"library", "library", "bool", "true",
           "Leave convolutions to the library of the target where it is fast">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

/// The bound keeps the time to compile linear in the length of a model.
def MostOperationsOption
    : Option<"mostOperations", "most-operations", "int64_t", "512",
             "A kernel is not made longer than this many operations, where a "
             "function of math counts as 16">;

def PipelineFuse : Pass<"pipeline-fuse", "::mlir::ModuleOp"> {
  let summary = "Fuses elementwise ops into the ops that use them";
  let description = [{
    Within a function, an elementwise `linalg.generic` joins a user of its
    result; if others use the result too, the fused op yields it. Fusion through
    a broadcast happens only when the producer is cheap, and never when it would
    change the order of a reduction: results are the same, bit for bit. Long
    chains become several kernels of at most `most-operations`.

    ```mlir
    %s = linalg.generic ... ins(%a, %bias) { addf }
    %h = linalg.generic ... ins(%s) { maximumf %zero }
    // becomes
    %h = linalg.generic ... ins(%a, %bias) { addf  maximumf %zero }
    ```
  }];
  let options = [MostOperationsOption];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PipelineMergeReductions
    : Pass<"pipeline-merge-reductions", "::mlir::func::FuncOp"> {
  let summary = "Computes sums over the same tensors in one loop";
  let description = [{
    Two `linalg.generic` ops on tensors with the same loops, whose sums go to
    the same dimensions, become one when the second reads a tensor that the
    first reads, or an elementwise result of it. A result that only the other
    wanted is no longer written. The order of each sum is what it was.

    ```mlir
    %d, %b = linalg.generic ins(%dy, %y) { mask; addf }     // and %d as a whole
    %g = linalg.generic ins(%d, %x) { mulf; addf }
    // becomes
    %d, %b, %g = linalg.generic ins(%dy, %y, %x) { mask; addf; mulf; addf }
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def PipelineSplitReductions
    : Pass<"pipeline-split-reductions", "::mlir::func::FuncOp"> {
  let summary = "Computes long sums in two steps, for devices of many threads";
  let description = [{
    A `linalg.generic` on tensors that adds up more elements than one block of
    threads should becomes one that computes partial sums, over divisors of its
    loops, and one that adds these up in order; sums across memory of 128
    elements and more, sums along memory of more than 16384, where there are few
    of them. The number of partial sums depends on the sizes of the loops only.
    A loop without a fitting divisor stays.

    ```mlir
    linalg.generic { addf } ins(%x : tensor<512x128xf32>) outs(%s : tensor<128xf32>)
    // becomes
    %y = tensor.expand_shape %x : into tensor<32x16x128xf32>
    %p = linalg.generic { addf } ins(%y) outs(%zeros : tensor<32x128xf32>)
    linalg.generic { addf } ins(%p) outs(%s)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PipelineSelectLibrary
    : Pass<"pipeline-select-library", "::mlir::ModuleOp"> {
  let summary = "Turns products and convolutions on buffers into library calls";
  let description = [{
    A `linalg.contract` of f32 buffers becomes a `kernel.gemm` with sizes and
    strides; a fill with zero that it would add to is dropped, otherwise the
    product accumulates. `nn.conv` and its gradients become `kernel.conv`. The
    target of the function chooses how the library computes a call and says so
    in its `config`. Contractions for which the library has no fast
    implementation stay (a remark says why) and become loops. Runs before the
    memory is planned, since calls need scratch.

    ```mlir
    linalg.fill ins(%zero : f32) outs(%c : memref<5x11xf32>)
    linalg.contract indexing_maps = [#mk, #kn, #mn]
      ins(%a, %b : memref<5x7xf32>, memref<7x11xf32>) outs(%c : memref<5x11xf32>)
    // becomes
    kernel.gemm %a, %b, %c sizes [5, 11, 7] strides [7, 1] [11, 1] [11, 1]
      config(#cpu.gemm<>)
      : memref<5x7xf32>, memref<7x11xf32>, memref<5x11xf32>
    ```
  }];
  let dependentDialects = ["::penstock::kernel::KernelDialect"];
}

def PipelineFuseRows
    : Pass<"pipeline-fuse-rows", "::mlir::func::FuncOp"> {
  let summary = "Runs ops over the same rows row by row";
  let description = [{
    Neighboring `linalg.generic` ops on buffers whose first, parallel loop runs
    over equally many rows move into one `scf.forall` over these rows, when what
    one writes the other touches only in the same row. Between the passes over a
    row it stays in the cache: where it would not, further loops that all ops
    have in common number the rows. They may still run on several threads.

    ```mlir
    linalg.generic { exp, addf } ins(%x) outs(%e, %s)     // 512 x 1024
    linalg.generic { divf } ins(%e, %s) outs(%p)
    // becomes
    scf.forall (%i) in (512) { both on row %i }
    ```

    Short rows that take long to compute come several at once. While the last op
    goes through a long row, the next row of the inputs is fetched.

    With one thread (of the function's target) ops join that sum over rows,
    element by element, if their accumulators are nobody else's meanwhile; the
    loop is an `scf.for` then.
  }];
  let options = [KernelKindOption, MostOperationsOption];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def PipelineOutlineKernels
    : Pass<"pipeline-outline-kernels", "::mlir::ModuleOp"> {
  let summary =
      "Moves each loop of a stage's functions to a function of its own";
  let description = [{
    `linalg` ops on buffers and loops over rows become private functions that
    are never inlined; what they take from outside is passed, constants come
    along. Loops that differ in nothing but the buffers share one function, so
    that equal layers are compiled once, and no function is so long that the
    code generator takes quadratic time. Where a slice begins in its array is
    passed as a number, so that the steps of a recurrence are equal, too. No
    result depends on it.

    ```mlir
    func.func private @s0.forward(%x: memref<5x7xf32>, %y: memref<5x7xf32>) {
      linalg.generic ... ins(%x) outs(%y) { maximumf }
      linalg.generic ... ins(%y) outs(%x) { maximumf }
    // becomes
      call @s0.forward.elementwise(%x, %y)
      call @s0.forward.elementwise(%y, %x)
    ```

    A function of one loop stays, and so does a loop that takes buffers of
    dynamic layout or calls the library.
  }];
  let options = [KernelKindOption];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PipelineApproximateMath
    : Pass<"pipeline-approximate-math", "::mlir::ModuleOp"> {
  let summary = "Expands exp, log, tanh, erf and others into polynomials";
  let description = [{
    On f32 scalars and vectors alike, so that the bits do not depend on which of
    the two an element went through. Functions without an accurate polynomial,
    and all of them in f64, become calls of the C library in `func.func`. In
    kernels of a `gpu.module` they stay. There, functions of f16 and bf16 are
    those of f32, rounded once.

    ```mlir
    %y = math.exp %x : f32
    %z = math.sin %x : f32
    // becomes
    %n = math.fma %x, %log2e, %rounding : f32
    ...
    %z = call @sinf(%x) : (f32) -> f32
    ```
  }];
  let options = [KernelKindOption];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // PENSTOCK_PASSES_KERNELS_PASSES_TD
