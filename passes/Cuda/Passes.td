//===- Passes.td - Kernels on a GPU ------------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions on buffers to a gpu.module of kernels in the NVVM dialect, and the
// launches that are left on the host.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_CUDA_PASSES_TD
#define PENSTOCK_PASSES_CUDA_PASSES_TD

include "mlir/Pass/PassBase.td"

// Other kinds of devices run other functions of the same module.
defvar GpuKindOption =
    Option<"kind", "kind", "std::string", "\"\"",
           "Only functions of targets of this dialect; empty: all functions">;

def PipelineMergeUpdates : Pass<"pipeline-merge-updates", "::mlir::ModuleOp"> {
  let summary = "Makes one call of the updates of many weights";
  let description = [{
    In device functions, calls that follow each other, of functions that are one
    elementwise op on whole buffers each, become one call: those whose ops differ
    in the shape of the buffers only, and which touch slots of distinct variables.
    The new function is an `scf.forall` over an `scf.index_switch` with a case for
    each of them. Calls with numbers of their own, such as another learning rate,
    stay apart.

    ```mlir
    func.call @sgd.7x11(%w1, %g1, %lr)
    func.call @sgd.11x13(%w2, %g2, %lr)
    // becomes
    func.call @sgd.merged(%w1, %g1, %lr, %w2, %g2)
    ```
  }];
  let options = [GpuKindOption];
  let dependentDialects = ["::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::scf::SCFDialect"];
}

def PipelineParallelLoops
    : Pass<"pipeline-parallel-loops", "::mlir::func::FuncOp"> {
  let summary = "Turns loops whose iterations share no element into forall";
  let description = [{
    An `scf.for` of static bounds that loads or stores becomes an `scf.forall`
    when each of its iterations touches its own slice of every buffer that the
    loop writes: all accesses to such a buffer have the counter as the index of
    one and the same dimension. Perfectly nested loops of this kind become one
    `scf.forall`. In a loop that is not of this kind the elements of a row may
    be: parallel loops of `linalg` ops within it move around it. If the loop
    writes at places that it computes, as a scatter does, each thread also goes
    through all iterations and skips those whose place is another thread's: the
    place's remainder by the number of owners says whose it is. Two buffers may
    overlap unless they are distinct arguments or
    distinct ranges of bytes.

    ```mlir
    scf.for %row = %c0 to %c5 step %c1 {
      scf.for %i = %c0 to %c7 step %c1 {
        %at = memref.load %indices[%row, %i] : memref<5x7xindex>
        %old = memref.load %y[%row, %at] : memref<5x9xf32>
        ...
        memref.store %sum, %y[%row, %at] : memref<5x9xf32>
    // becomes
    scf.forall (%row) in (5) {
      scf.for %i = %c0 to %c7 step %c1 { ... }
    ```
  }];
  let options = [GpuKindOption];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def PipelineFormRows : Pass<"pipeline-form-rows", "::mlir::func::FuncOp"> {
  let summary = "Forms kernels of ops over the same rows, for teams of threads";
  let description = [{
    A `linalg.generic` that adds up along its innermost loop, at least 32
    elements per row, becomes an `scf.forall` over its rows. Neighbors that go
    through the same rows join it: fills, numbers per row, elements of the row
    and further sums. The forall says whether a row is for a warp (up to 1024
    elements) or a block. Rows keep their places and ops their arithmetic.

    A row is a thread's where it is short, or where rows and not their elements
    lie side by side in memory, as in a sum over the rows of a matrix. Then only
    fills, numbers and further sums join.

    ```mlir
    linalg.generic { maximumf } ins(%x) outs(%m)        // 512 x 1024
    linalg.generic { exp, addf } ins(%x, %m) outs(%e, %s)
    // becomes
    scf.forall (%i) in (512) {
      linalg.generic ... both on row %i
    } {mapping = [#gpu.warp<linear_dim_0>]}
    ```
  }];
  let options = [GpuKindOption];
  let dependentDialects = ["::mlir::gpu::GPUDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def PipelineFormEpilogues
    : Pass<"pipeline-form-epilogues", "::mlir::func::FuncOp"> {
  let summary = "Lets products add a bias and apply ReLU";
  let description = [{
    A `linalg.generic` that follows a product of f32 and adds an element per
    column, bounds the result below by zero, or both, becomes the product's
    epilogue. It works on the product in place, or reads it as the only one from
    temporary memory; then the product is computed where the result belongs.

    Whether the library has the same bits is known when a program opens. So the
    op stays, for where it has not.

    ```mlir
    kernel.gemm %x, %w, %y sizes [5, 11, 7] ...
    linalg.generic ... ins(%y, %bias) outs(%y) { addf, maximumf }
    // becomes
    %pending = kernel.gemm %x, %w, %y bias(%bias : ...) relu sizes [5, 11, 7] ...
    scf.if %pending {
      linalg.generic ... ins(%y, %bias) outs(%y) { addf, maximumf }
    }
    ```
  }];
  let options = [GpuKindOption];
  let dependentDialects = ["::mlir::scf::SCFDialect",
                           "::penstock::kernel::KernelDialect"];
}

def PipelinePlaceConstants
    : Pass<"pipeline-place-constants", "::mlir::func::FuncOp"> {
  let summary = "Lets library calls read constants in the device's memory";
  let description = [{
    Once kernels have taken their constants along, those left are operands of
    library calls.

    ```mlir
    %ones = memref.get_global @ones : memref<5x7xf32>
    kernel.gemm %x, %ones, %y ...
    // becomes
    %ones = kernel.constant @ones : memref<5x7xf32>
    ```
  }];
  let options = [GpuKindOption];
  let dependentDialects = ["::penstock::kernel::KernelDialect"];
}

def PipelineOutlineGpuKernels
    : Pass<"pipeline-outline-gpu-kernels", "::mlir::ModuleOp"> {
  let summary = "Moves all that touches a buffer to kernels of a gpu.module";
  let description = [{
    The host cannot read or write the memory of the device. So each `linalg` op
    on buffers, each `scf.forall` and each loop that loads or stores becomes a
    `gpu.func` of the module @cuda_kernels and a `kernel.launch` in its place.
    Constants come along, also those in memory; buffers and numbers are passed.
    A buffer begins at its first element there, whatever it is a part of. Equal
    kernels are one.

    Library calls, views of buffers, and loops around library calls or `linalg`
    ops stay on the host. What the host would have to load is an error. Device
    functions stay as they are.

    ```mlir
    func.func private @s0.forward(%x: memref<5x7xf32>, %y: memref<5x7xf32>) {
      linalg.generic ... ins(%x) outs(%y) { maximumf }
    // becomes
    func.func private @s0.forward(%x: memref<5x7xf32>, %y: memref<5x7xf32>) {
      kernel.launch @cuda_kernels::@s0_forward_elementwise
        grid [1, 1, 1] block [1, 1, 1] (%x, %y)
    ...
    gpu.module @cuda_kernels {
      gpu.func @s0_forward_elementwise(%x: memref<5x7xf32, 1>,
                                       %y: memref<5x7xf32, 1>) kernel {
        linalg.generic ... ins(%x) outs(%y) { maximumf }
    ```

    The pass that maps a kernel to threads sets grid and block.
  }];
  let options = [GpuKindOption];
  let dependentDialects = ["::penstock::kernel::KernelDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PipelineGpuUpdates : Pass<"pipeline-gpu-updates", "::mlir::ModuleOp"> {
  let summary = "Numbers the blocks of merged updates through all buffers";
  let description = [{
    Maps kernels of an `scf.forall` that `pipeline-merge-updates` has made. A
    block of 128 threads has 512 elements of one of the buffers. It finds these
    by halves, and its threads compute four elements each, by vectors, or one by
    one what is left at the end of a buffer.

    ```mlir
    scf.forall (%n) in (2) { scf.index_switch %n
      case 0 { linalg.generic ... outs(%a : memref<700xf32>) }
      case 1 { linalg.generic ... outs(%b : memref<5x7xf32>) }
    // becomes
    %w, %count, %first = scf.if %block < 2 { %a, 700, 0 } else { %b, 35, 2 }
    %i = ((%block - %first) * 128 + %thread) * 4
    scf.if %i + 4 <= %count { vector.load %w[%i] ... } else { scf.for ... }
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def PipelineGpuRows : Pass<"pipeline-gpu-rows", "::mlir::ModuleOp"> {
  let summary = "Gives each row of a kernel to a warp or a block";
  let description = [{
    Maps kernels of an `scf.forall` that `pipeline-form-rows` has made: four
    rows to a block of 128 threads, or one to a block of 256 or 512. Thread t
    has elements t, t + threads, .., four at a time where rows are of whole
    vectors. Partial sums of threads meet by butterflies, those of warps in
    their order through shared memory. So a sum has one order for each size of a
    row, whatever else the kernel does, and the old value is added once.

    Numbers of a row are stored at its end, by its first thread. The threads of
    a row wait for each other only where one touches what another one wrote.

    ```mlir
    scf.forall (%i) in (512) {
      linalg.generic { addf } ins(%x[%i, ..]) outs(%s[%i])    // 64 elements
    } {mapping = [#gpu.warp<linear_dim_0>]}
    // becomes, for thread %t of the warp of row %i
    scf.if %t < 16 { vector.load %x[%i, %t * 4] ... }
    gpu.shuffle xor %sum, 16 ... 1
    scf.if %t == 0 { memref.store %sum, %s[%i] }
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def PipelineGpuElementwise
    : Pass<"pipeline-gpu-elementwise", "::mlir::ModuleOp"> {
  let summary = "Gives each thread a vector of elements, loaded and stored at once";
  let description = [{
    Maps kernels of a `linalg` op without sums. Neighboring loops become one
    where all buffers allow it. Where each buffer that moves along the last loop
    has its elements side by side there, begins at a multiple of 16 bytes
    (`llvm.align`), and rows are of whole vectors, a thread computes as many
    elements in a row as 128 bits hold of the widest operand that has one for
    each iteration: four of f32, eight of bf16, sixteen truth values; never less
    than four. A single row may have a rest, which the last thread computes one
    by one. Other kernels stay.

    ```mlir
    gpu.func @relu(%x: memref<5x70xf32, 1> {llvm.align = 16 : i64}, ...) kernel {
      linalg.generic ... { maximumf }
    // becomes, for thread %n of 88
    scf.if %n < 87 {
      %v = vector.load %x[%n * 4] ... maximumf, of each element ... vector.store
    } else {
      memref.load %x[348] ... memref.load %x[349] ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def PipelineGpuScatters : Pass<"pipeline-gpu-scatters", "::mlir::ModuleOp"> {
  let summary = "Lets a warp look for the targets that it owns";
  let description = [{
    Maps kernels of an `scf.forall` over owners of targets, as
    `pipeline-parallel-loops` makes of a scatter. An owner, and 32 elements of a
    row, have a warp. Its lanes look at 32 indices at a time, and vote on which of
    them the owner has. Then each lane adds its element of these, one after the
    other. An index must not depend on the element.

    ```mlir
    scf.forall (%owner, %element) in (64, 768) {
      scf.for %i = %c0 to %c8192 step %c1 {
        %at = memref.load %indices[%i]
        scf.if %at mod 64 == %owner { %y[%at, %element] += %x[%i, %element] }
    // becomes
    scf.for %i = %c0 to %c8192 step %c32 {
      %at = memref.load %indices[%i + %lane]
      %mine = nvvm.vote.sync ballot %all, %at mod 64 == %owner -> i32
      scf.while ... // for each bit of %mine
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def PipelineGpuTransposes
    : Pass<"pipeline-gpu-transposes", "::mlir::ModuleOp"> {
  let summary = "Transposes in tiles of shared memory";
  let description = [{
    Maps kernels of an elementwise `linalg` op whose results lie along one loop
    in memory, and some operands along another, both of at least 16 iterations.
    A block of 256 threads reads a tile of 32 x 32 elements of each of these
    operands along the one, waits, and computes and writes along the other. The
    other operands, and the arithmetic, are those of the plain mapping.

    ```mlir
    linalg.generic { addf } ins(%x[j, i], %y[i, j]) outs(%z[i, j])
    // becomes
    %tile : memref<32x33xf32, 3>
    %tile[%row, %column] = %x[.. + %row, .. + %column]
    gpu.barrier
    %z[.. + %row, .. + %column] = %tile[%column, %row] + %y[..]
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def PipelineGpuLoops : Pass<"pipeline-gpu-loops", "::mlir::ModuleOp"> {
  let summary = "Maps the parallel loops of kernels to threads, one each";
  let description = [{
    The parallel loops of the `linalg` op or `scf.forall` of a kernel are
    numbered, the innermost one fastest, and each thread runs one iteration, in
    blocks of 128. All other loops run within the thread in the order in which
    they are written. Results that do not change along them stay in registers.
    The arithmetic is that of the scalar body, so that what is elementwise has
    the bits that it has on a CPU.

    A kernel without a parallel loop runs on one thread; a remark says so. Sets
    `known_block_size` and `known_grid_size` of kernels, and grid and block of
    their launches. Kernels that have these attributes are mapped already.

    ```mlir
    gpu.func @sum(%x: memref<300x7xf32, 1>, %y: memref<300xf32, 1>) kernel {
      linalg.generic {iterator_types = ["parallel", "reduction"]} ... { addf }
    // becomes
    gpu.func @sum(%x: memref<300x7xf32, 1>, %y: memref<300xf32, 1>) kernel
        attributes {known_block_size = array<i32: 128, 1, 1>,
                    known_grid_size = array<i32: 3, 1, 1>} {
      %i = ... // block * 128 + thread
      scf.if %i < 300 {
        %old = memref.load %y[%i]
        %sum = scf.for %j = 0 to 7 iter_args(%s = %old) { addf }
        memref.store %sum, %y[%i]
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def PipelineFormActions : Pass<"pipeline-form-actions", "::mlir::ModuleOp"> {
  let summary = "Groups calls of device functions into graphs of a GPU";
  let description = [{
    Calls of stage functions between two transfers, waits or marks become a
    `kernel.action`. Its key tells all ways apart in which the rings of its slots
    can stand; where there are more than 64, it has none and a remark says so.

    A stage function that takes numbers takes their places in memory instead:
    the caller computes what kernels need, and one kernel stores it before the
    action. Where the host needs a number for something else, such as an
    address, the function keeps its numbers, and its actions have no key.

    ```mlir
    pipeline.mark @s0.U[%t]
    %w = pipeline.slot @w[%t] ring(2) ...
    func.call @sgd(%w, %gradient, %rate) : (memref<7xf32>, memref<7xf32>, f32) -> ()
    // becomes
    pipeline.mark @s0.U[%t]
    %w = pipeline.slot @w[%t] ring(2) ...
    %place = kernel.scalar "s0.U"[0] : memref<f32>
    kernel.launch @cuda_kernels::@store_numbers ... (%place, %rate)
    %key = ... // %t mod 2
    kernel.action "s0.U" key(%key of 2) scalars(1) {
      func.call @sgd(%w, %gradient, %place) : (memref<7xf32>, memref<7xf32>, memref<f32>) -> ()
    }
    ```
  }];
  let options = [GpuKindOption];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::gpu::GPUDialect",
                           "::penstock::kernel::KernelDialect"];
}

def PipelineGpuToNvvm
    : Pass<"pipeline-gpu-to-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lowers the kernels of a GPU module to the NVVM dialect";
  let description = [{
    Expects branches instead of loops, and address arithmetic instead of views.
    Buffers become bare addresses of global memory. Sums, products, quotients,
    square roots and multiply-adds are those of IEEE 754. Functions for which
    there is neither an instruction nor a polynomial become calls of NVIDIA's
    libdevice, which are resolved when the code is made.

    ```mlir
    %y = math.fma %a, %b, %c : f32
    %z = math.sin %y : f32
    // becomes
    %y = llvm.intr.fma(%a, %b, %c)
    %z = llvm.call @__nv_sinf(%y)
    ```

    Upstream's `convert-gpu-to-nvvm` makes calls of all functions of `math`. The
    data layout of the GPU is set on the module, since alignments follow from
    it.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

#endif // PENSTOCK_PASSES_CUDA_PASSES_TD
