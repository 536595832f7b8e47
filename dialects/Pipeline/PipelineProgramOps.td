//===- PipelineProgramOps.td - Ops of device programs ------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices, their memory, and transfers.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_PIPELINE_PIPELINEPROGRAMOPS_TD
#define PENSTOCK_DIALECTS_PIPELINE_PIPELINEPROGRAMOPS_TD

include "dialects/Pipeline/PipelineBase.td"

def Pipeline_DeviceOp : Pipeline_Op<"device", [InModule]> {
  let summary = "A device and its target";
  let description = [{
    The target says what kind of device it is and what its code and library
    calls are for: an attribute of the dialect of that kind. Every function that
    devices run has their target (`pipeline.target`).

    ```mlir
    pipeline.device 0 target(#cpu.target<threads(4)>)
    ```

    Constraints:
    - **C34**: a device is declared once; the devices of one stage have one
      target.
  }];
  let arguments = (ins NonNegative:$number, TargetAttrInterface:$target);
  let assemblyFormat = "$number `target` `(` $target `)` attr-dict";
  let hasVerifier = 0;
}

def Pipeline_ArenaOp : Pipeline_Op<"arena", [InModule]> {
  let summary = "All the memory of one device";
  let description = [{
    `bytes` is its size. `alignment`, 64 by default, is that of its base.

    ```mlir
    pipeline.arena 0 bytes(4096)
    ```
  }];
  let arguments = (ins NonNegative:$device, NonNegative:$bytes,
                       DefaultValuedAttr<Positive, "64">:$alignment);
  let assemblyFormat = [{
    $device `bytes` `(` $bytes `)` (`alignment` `(` $alignment^ `)`)? attr-dict
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

    ```mlir
    %x = pipeline.slot @x[%k] ring(3) at(2368) stride(192) : memref<5x7xf32>
    %h = pipeline.slot @s0.residuals[%k] field(1) : memref<5x11xf32>
    ```

    Constraints:
    - **C26**: it names a variable, or a field of a channel, and the buffer has
      its type; a ring with an address has a stride, or an address for each of
      its slots, of which the first is `at`.
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
    /// Returns the offset of a position of the ring in the arena, in bytes.
    int64_t getOffset(int64_t position) {
      if (::mlir::DenseI64ArrayAttr places = getPlacesAttr();
          places && position < places.size())
        return places[position];
      return static_cast<int64_t>(getAt().value_or(0)) +
             position * static_cast<int64_t>(getStride().value_or(0));
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

    ```mlir
    %t = pipeline.scratch at(1792) : memref<576xi8>
    ```

    Constraints:
    - **C26**: the buffer is static and contiguous.
  }];
  let arguments = (ins OptionalAttr<NonNegative>:$at);
  let results = (outs AnyMemRef:$buffer);
  let assemblyFormat = "(`at` `(` $at^ `)`)? attr-dict `:` type($buffer)";
}

def Pipeline_StartRecvOp : Pipeline_Op<"start_recv", [InFunction]> {
  let summary = "Queues a receive behind all work issued; never blocks";
  let description = [{
    Message `number` of the channel fills the buffer. The device goes on;
    `pipeline.await` waits for the end.

    ```mlir
    pipeline.start_recv @h1[%k], %buffer : memref<5x11xf32>
    ```

    Constraints:
    - **C26**: the buffer is static and contiguous.
    - **C27**: it moves the type of its channel.
  }];
  let arguments = (ins FlatSymbolRefAttr:$channel, Index:$number,
                       AnyMemRef:$buffer);
  let assemblyFormat = [{
    $channel `[` $number `]` `,` $buffer attr-dict `:` type($buffer)
  }];
}

def Pipeline_StartSendOp : Pipeline_Op<"start_send", [InFunction]> {
  let summary = "Queues a send behind all work issued; never blocks";
  let description = [{
    Message `number` of the channel leaves the buffer. The device goes on;
    `pipeline.await` waits for the end.

    ```mlir
    pipeline.start_send @h1[%k], %buffer : memref<5x11xf32>
    ```

    Constraints:
    - **C26**: the buffer is static and contiguous.
    - **C27**: it moves the type of its channel.
  }];
  let arguments = (ins FlatSymbolRefAttr:$channel, Index:$number,
                       AnyMemRef:$buffer);
  let assemblyFormat = [{
    $channel `[` $number `]` `,` $buffer attr-dict `:` type($buffer)
  }];
}

def Pipeline_StartAllReduceOp : Pipeline_Op<"start_all_reduce", [InFunction]> {
  let summary = "Queues a sum over a group; never blocks";
  let description = [{
    The buffers are those of the members that are on this device, one member
    after the other, and hold the sum afterwards.

    ```mlir
    pipeline.start_all_reduce @tied[%t], %a, %b
        : memref<7x11xf32>, memref<7x11xf32>
    ```

    Constraints:
    - **C26**: the buffers are static and contiguous.
    - **C27**: they are those of the members, in their order and of their types.
  }];
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
    until it has left its buffer. Of a group: until it is summed. Transfers with
    other devices end in the order of issue, so that one await covers the
    earlier ones. A negative number waits for nothing.

    ```mlir
    pipeline.await @h1[%k]
    ```

    Constraints:
    - **C28**: it names a channel or a group.
  }];
  let arguments = (ins FlatSymbolRefAttr:$channel, Index:$number);
  let assemblyFormat = "$channel `[` $number `]` attr-dict";
}

def Pipeline_BoundOp : Pipeline_Op<"bound", [InFunction]> {
  let summary = "How many updates the running segment has";
  let description = [{
    At the head of each iteration of an outermost loop of a device function. A
    segment can become shorter while it runs: all devices then do what they
    would have done in the shorter one. `least` is the number of updates of the
    shortest segment that has all that this device does in this iteration and
    did in earlier ones. The result is at least the `least` of the iteration
    before, at most the number that the function was called with, and from the
    first smaller one on always the same.

    ```mlir
    %n = pipeline.bound %least
    ```

    The range tests of the iteration go by the result, and the loop ends where
    its upper bound would be in a segment of so many updates. S8 follows both.

    Constraints:
    - **C28**: it stands in an outermost loop of a function.
  }];
  let arguments = (ins Index:$least);
  let results = (outs Index:$updates);
  let assemblyFormat = "$least attr-dict";
}

def Pipeline_MarkOp : Pipeline_Op<"mark", [InFunction]> {
  let summary = "The device is about to run a task: for trace and watchdog";
  let description = [{
    Traces, flight records and the watchdog name what a device does by it. It
    changes nothing.

    ```mlir
    pipeline.mark @s0.F[%k]
    ```

    Constraints:
    - **C28**: it names a task.
  }];
  let arguments = (ins FlatSymbolRefAttr:$task, Index:$number);
  let assemblyFormat = "$task `[` $number `]` attr-dict";
}

#endif // PENSTOCK_DIALECTS_PIPELINE_PIPELINEPROGRAMOPS_TD
