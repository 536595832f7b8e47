//===- Passes.td - Kernels on a CPU ------------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels to vector loops that are divided over the threads of a device.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_CPU_PASSES_TD
#define PENSTOCK_PASSES_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def PipelineParallelize
    : Pass<"pipeline-parallelize", "::mlir::ModuleOp"> {
  let summary = "Splits the loops of large kernels over the device's threads";
  let description = [{
    In functions whose target has several threads, large `linalg` ops are tiled
    along a parallel dimension into an `scf.forall`, whose body moves to a
    function of its own that `penstock_parallel` calls once per thread. The
    split depends on sizes alone, and no result depends on the split. An
    `scf.forall` that is left, or all with one thread, become ordinary loops.
    Functions without a target have one thread.
  }];
  let options = [
    Option<"threshold", "threshold", "int64_t", "131072",
           "Loop iterations from which on an op is split">];
  let dependentDialects = ["::penstock::cpu::CpuDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def PipelineVectorLoops
    : Pass<"pipeline-vector-loops", "::mlir::func::FuncOp"> {
  let summary = "Lowers linalg on buffers to loops over vectors";
  let description = [{
    Every `linalg` op on static buffers becomes `scf` loops around `vector` ops.
    The vector dimension is the innermost one that each operand lacks or has as
    its fastest index; the others become loops. A reduction along the vector
    dimension has up to four accumulators and an explicit tree at its end. Those
    of a maximum that leaves out NaN begin at -inf and are never NaN. They
    are kept through the other loops of the reduction, too: the innermost ones,
    and if those are shorter than 256 elements all of them, which then go inside
    the parallel ones. The bits depend on the op and the width alone. The rest
    of a row is masked; neighboring parallel loops over dense buffers become
    one, whose rest is one. What has no vector form becomes scalar loops.

    ```mlir
    linalg.generic ... ins(%x : memref<5x70xf32>) outs(%s : memref<5xf32>) { addf }
    // becomes
    scf.for %i = 0 to 5 {
      %a:4 = scf.for %j = 0 to 64 step 64 iter_args(...) { 4 vector.load, addf }
      %t = vector.maskedload ...   // 6 lanes
      ... pairs of accumulators, halves of the vector, memref.store
    }
    ```
  }];
  let options = [
    Option<"width", "width", "int64_t", "0",
           "Lanes of a vector; 0: as many as the target's processor prefers">];
  let dependentDialects = ["::penstock::cpu::CpuDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def PipelineExpandBf16
    : Pass<"pipeline-expand-bf16", "::mlir::func::FuncOp"> {
  let summary = "Write conversions to and from bf16 as integer operations";
  let description = [{
    Few CPUs have an instruction that rounds to bf16, and the C library of
    Debian 12 has no function for it. So the rounding, to nearest and to even,
    is written out, the same on every CPU. f64 goes through f32, as in PyTorch.

    ```mlir
    %b = arith.truncf %x : f32 to bf16
    // becomes, besides the case of NaN
    %bits = arith.bitcast %x : f32 to i32
    %last = arith.shrui %bits, %c16 : i32
    %odd = arith.andi %last, %c1 : i32
    %bias = arith.addi %odd, %c32767 : i32
    %rounded = arith.addi %bits, %bias : i32
    ...
    ```
  }];
  let dependentDialects = ["::penstock::cpu::CpuDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // PENSTOCK_PASSES_CPU_PASSES_TD
