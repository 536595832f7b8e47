//===- PipelineProgramOps.td - Ops of device programs ------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory, transfers, and the kernels that a vendor library has.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_PIPELINE_PIPELINEPROGRAMOPS_TD
#define PENSTOCK_DIALECTS_PIPELINE_PIPELINEPROGRAMOPS_TD

include "dialects/Nn/LibraryCallOpInterface.td"
include "dialects/Pipeline/PipelineBase.td"

def Pipeline_ArenaOp : Pipeline_Op<"arena", [InModule]> {
  let summary = "All the memory of one device";
  let description = [{
    `bytes` is its size. `threads` is the fixed number of threads that the
    device computes with: a fact of the numerics, since library results depend
    on it. `alignment`, 64 by default, is that of its base.

    ```mlir
    pipeline.arena 0 bytes(4096) threads(1)
    ```
  }];
  let arguments = (ins NonNegative:$device, NonNegative:$bytes,
                       Positive:$threads,
                       DefaultValuedAttr<Positive, "64">:$alignment);
  let assemblyFormat = [{
    $device `bytes` `(` $bytes `)` `threads` `(` $threads `)`
    (`alignment` `(` $alignment^ `)`)? attr-dict
  }];
  let hasVerifier = 0;
}

def Pipeline_SlotOp : Pipeline_Op<"slot", [Pure, InFunction,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "The buffer of a variable's version or of a message";
  let description = [{
    Its address in the device's arena is at + (n mod ring) * stride, in bytes,
    or entry n mod ring of `places`. `ring`, `at` and `stride` default to 1,
    unset and 0; `pipeline-plan-memory` sets `at` and `stride`, or `at` to the
    first of `places` and `stride` to what they are aligned to.
  }];
  let arguments = (ins FlatSymbolRefAttr:$symbol, Index:$number,
                       OptionalAttr<NonNegative>:$field,
                       OptionalAttr<Positive>:$ring,
                       OptionalAttr<NonNegative>:$at,
                       OptionalAttr<NonNegative>:$stride,
                       OptionalAttr<DenseI64ArrayAttr>:$places);
  let results = (outs AnyMemRef:$buffer);
  let assemblyFormat = [{
    $symbol `[` $number `]` (`field` `(` $field^ `)`)? (`ring` `(` $ring^ `)`)?
    (`at` `(` $at^ `)`)? (`stride` `(` $stride^ `)`)? (`places` $places^)?
    attr-dict `:` type($buffer)
  }];
  let extraClassDeclaration = [{
    /// Where slot `index` of the ring is, of one that has its place.
    int64_t getPlace(int64_t index) {
      if (::mlir::DenseI64ArrayAttr places = getPlacesAttr();
          places && index < places.size())
        return places[index];
      return static_cast<int64_t>(getAt().value_or(0)) +
             index * static_cast<int64_t>(getStride().value_or(0));
    }
  }];
}

def Pipeline_ScratchOp : Pipeline_Op<"scratch", [Pure, InFunction,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Temporary memory of one kernel call";
  let description = [{
    Its temporaries, and the scratch of its library calls, which is where these
    say themselves. `at` is set by `pipeline-plan-memory`: calls of different
    kernels may share bytes, as one runs at a time, and all calls of a kernel on
    a device have one place.
  }];
  let arguments = (ins OptionalAttr<NonNegative>:$at);
  let results = (outs AnyMemRef:$buffer);
  let assemblyFormat = "(`at` `(` $at^ `)`)? attr-dict `:` type($buffer)";
}

def Pipeline_StartRecvOp : Pipeline_Op<"start_recv", [InFunction]> {
  let summary = "Queues a receive behind all work issued; never blocks";
  let arguments = (ins FlatSymbolRefAttr:$channel, Index:$number,
                       AnyMemRef:$buffer);
  let assemblyFormat = [{
    $channel `[` $number `]` `,` $buffer attr-dict `:` type($buffer)
  }];
}

def Pipeline_StartSendOp : Pipeline_Op<"start_send", [InFunction]> {
  let summary = "Queues a send behind all work issued; never blocks";
  let arguments = (ins FlatSymbolRefAttr:$channel, Index:$number,
                       AnyMemRef:$buffer);
  let assemblyFormat = [{
    $channel `[` $number `]` `,` $buffer attr-dict `:` type($buffer)
  }];
}

def Pipeline_StartAllReduceOp : Pipeline_Op<"start_all_reduce", [InFunction]> {
  let summary = "Queues a sum over a group; never blocks";
  let arguments = (ins FlatSymbolRefAttr:$group, Index:$number,
                       Variadic<AnyMemRef>:$buffers);
  let assemblyFormat = [{
    $group `[` $number `]` `,` $buffers attr-dict `:` type($buffers)
  }];
}

def Pipeline_AwaitOp : Pipeline_Op<"await", [InFunction]> {
  let summary = "Later work waits for this transfer of this device";
  let description = [{
    On the receiving device: until the message is there; on the sending one:
    until it has left its buffer. Of a group: until it is summed. A negative
    number waits for nothing.
  }];
  let arguments = (ins FlatSymbolRefAttr:$channel, Index:$number);
  let assemblyFormat = "$channel `[` $number `]` attr-dict";
}

def Pipeline_MarkOp : Pipeline_Op<"mark", [InFunction]> {
  let summary = "The device is about to run a task: for trace and watchdog";
  let arguments = (ins FlatSymbolRefAttr:$task, Index:$number);
  let assemblyFormat = "$task `[` $number `]` attr-dict";
}

def Pipeline_GemmOp : Pipeline_Op<"gemm",
    [LibraryCallOpInterface, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "A matrix product by the vendor library";
  let description = [{
    C = A.B, or C += A.B with `accumulate`, for every index of the batch
    dimensions. `sizes` is [batch..., m, n, k]; strides are in elements, as
    [batch..., row, column]. In kernel functions only. With `panels`, B is what
    pipeline.pack_panels makes, of so many columns each; its strides are those
    in a panel.

    ```mlir
    pipeline.gemm %a, %b, %c sizes [5, 11, 7] strides [7, 1] [11, 1] [11, 1]
      accumulate : memref<5x7xf32>, memref<7x11xf32>, memref<5x11xf32>
    ```
  }];
  let arguments = (ins AnyMemRef:$a, AnyMemRef:$b, AnyMemRef:$c,
                       DenseI64ArrayAttr:$sizes,
                       DenseI64ArrayAttr:$strides_a,
                       DenseI64ArrayAttr:$strides_b,
                       DenseI64ArrayAttr:$strides_c,
                       UnitAttr:$accumulate,
                       OptionalAttr<I64Attr>:$panels,
                       OptionalAttr<Nn_ScratchAttr>:$scratch);
  let assemblyFormat = [{
    $a `,` $b `,` $c `sizes` $sizes `strides` $strides_a $strides_b $strides_c
    (`accumulate` $accumulate^)? (`panels` `(` $panels^ `)`)?
    (`scratch` $scratch^)? attr-dict `:` type($a) `,` type($b) `,` type($c)
  }];
}

def Pipeline_PackPanelsOp : Pipeline_Op<"pack_panels"> {
  let summary = "Brings weights into the order that products read fastest";
  let description = [{
    So that a product that reads them often need not do it in each call.
    `pipeline-prepack-weights` decides where that pays. In kernel functions
    only.

    ```mlir
    pipeline.pack_panels %w to %p
      as <[1024, 4096] strides [1, 1024] width 384 stride 400>
      : memref<4096x1024xf32>, memref<4505600xf32>
    ```
  }];
  let arguments = (ins Arg<MemRefOf<[F32]>, "", [MemRead]>:$weights,
                       Arg<MemRefRankOf<[F32], [1]>, "", [MemWrite]>:$prepacked,
                       Pipeline_PanelsAttr:$panels);
  let assemblyFormat = [{
    $weights `to` $prepacked `as` $panels attr-dict
    `:` type($weights) `,` type($prepacked)
  }];
}

#endif // PENSTOCK_DIALECTS_PIPELINE_PIPELINEPROGRAMOPS_TD
