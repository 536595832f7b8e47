//===- Passes.td - Schedule passes -------------------------*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From tasks to a verified order of tasks and transfers on devices.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_SCHEDULE_PASSES_TD
#define PENSTOCK_PASSES_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def PipelineVirtualWorkers
    : Pass<"pipeline-virtual-workers", "::mlir::ModuleOp"> {
  let summary = "Makes a line of stages for every worker of the method";
  let description = [{
    Of a method of several workers (HetPipe). Stages, their variables, channels
    and tasks of training are cloned for each worker but the first; all call the
    same functions. Tasks that push what a wave has changed, and that fold what
    others pushed, are added, with a channel for every parameter and ordered
    pair of workers. What comes from outside goes round the workers.

    ```mlir
    pipeline.task @s0.P push of @s0(%t) {
      %w = pipeline.read @fc1 : tensor<7x11xf32>
      %b = pipeline.read @fc1.base lag(1) : tensor<7x11xf32>
      %own = func.call @push.7x11xf32(%w, %b)
      pipeline.write %own to @fc1.wave
      %sent = func.call @push.7x11xf32(%w, %b)
      pipeline.put %sent to @fc1.wave.0.1
    }
    ```

    Without such a method, nothing.
  }];
  let dependentDialects = ["::penstock::pipeline::PipelineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PipelinePlace : Pass<"pipeline-place", "::mlir::ModuleOp"> {
  let summary = "Gives every stage its device";
  let description = [{
    `line`: stage i on device i. `loop`: stage i on device i mod p, with several
    chunks per device. `wave`: down the devices and up again, so that two chunks
    make a V. A schedule knows what it wants. With fewer chunks than stages,
    neighbors share one, as evenly as can be, the earlier chunks having more.

    ```mlir
    pipeline.stage @s0
    // becomes
    pipeline.stage @s0 devices [0]
    ```

    Replicas of a stage are on devices next to each other, which count among the
    devices.
  }];
  let options = [
    Option<"devices", "devices", "int64_t", "0",
           "Number of devices; 0: one per stage">,
    Option<"placement", "placement", "std::string", "\"line\"",
           "How stages are laid out: line, loop, wave">,
    Option<"chunks", "chunks", "int64_t", "0",
           "Chunks per device in a loop or wave; 0: one per stage">,
    Option<"schedule", "schedule", "::penstock::schedule::ScheduleSpec", "",
           "A schedule whose placement it is, in place of the two before">,
    Option<"file", "file", "std::string", "\"\"",
           "A table of a schedule that has places, instead of all the others">,
    ListOption<"replicas", "replicas", "int64_t",
               "Replicas of every stage, or one number per stage">
  ];
  let dependentDialects = ["::penstock::pipeline::PipelineDialect"];
}

def PipelineDeclareDevices
    : Pass<"pipeline-declare-devices", "::mlir::ModuleOp"> {
  let summary = "Says what every device of the stages is";
  let description = [{
    Adds a `pipeline.device` for each device that has none yet. `targets` is the
    target of all devices, or a list with that of each device in order.

    ```mlir
    pipeline.stage @s0 devices [0]
    // becomes, with targets="#cpu.target<threads(4)>",
    pipeline.device 0 target(#cpu.target<threads(4)>)
    pipeline.stage @s0 devices [0]
    ```
  }];
  let options = [
    Option<"targets", "targets", "std::string", "\"\"",
           "A target attribute, or a list of them in brackets">
  ];
  let dependentDialects = ["::penstock::pipeline::PipelineDialect"];
}

def PipelineGatherStatistics
    : Pass<"pipeline-gather-statistics", "::mlir::ModuleOp"> {
  let summary = "Moves running statistics of replicated stages at the update";
  let description = [{
    A statistic moves with every microbatch in turn; a replica sees but some.
    Its forward sends what a microbatch moves it by to the backward, which notes
    it in rows that are summed over the replicas, and the update moves it by one
    row after the other: the same operations in the same order as with one
    replica. A stage without backward or update, as nothing is trained there,
    gets those.

    ```mlir
    pipeline.channel @bn.mean.seen : [tensor<5xf32>]
    pipeline.variable @bn.mean.rows : tensor<8x5xf32> gradient of @s0
      {pipeline.parameter = @bn.mean}
    pipeline.task @s0.F forward of @s0(%k) {
      %y, %mean = func.call @s0.forward(%x) : (!x) -> (!y, tensor<5xf32>)
      pipeline.put %mean to @bn.mean.seen : tensor<5xf32>
    }
    pipeline.task @s0.B backward of @s0(%k) {
      %mean = pipeline.take @bn.mean.seen : tensor<5xf32>
      %r = pipeline.read @bn.mean.rows : !rows
      %row = arith.remui %k, %c8 : index
      %n = func.call @note(%mean, %r, %row)
        : (tensor<5xf32>, !rows, index) -> !rows
      pipeline.write %n to @bn.mean.rows : !rows
    }
    pipeline.task @s0.U update of @s0(%t) {
      %m = pipeline.read @bn.mean : tensor<5xf32>
      %r = pipeline.read @bn.mean.rows : !rows
      %next, %zero = func.call @bn.mean.move(%m, %r)
        : (tensor<5xf32>, !rows) -> (tensor<5xf32>, !rows)
      ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect",
                           "::penstock::pipeline::PipelineDialect"];
}

def PipelineSumReplicas : Pass<"pipeline-sum-replicas", "::mlir::ModuleOp"> {
  let summary = "Adds up the gradients of the replicas of a stage";
  let description = [{
    Every replica of a stage has a gradient from its own microbatches. A group
    per stage says that they are summed before the update, in the order of the
    replicas. Gradients of tied parameters are in groups already, whose sums run
    over all replicas of all stages.

    ```mlir
    pipeline.stage @s0 devices [0, 1]
    pipeline.group @s0.replicas members [[@fc1.grad, @fc2.grad]]
    ```
  }];
  let dependentDialects = ["::penstock::pipeline::PipelineDialect"];
}

def PipelineGenerateSchedule
    : Pass<"pipeline-generate-schedule", "::mlir::ModuleOp"> {
  let summary = "Writes the order of every device, runs only";
  let description = [{
    `@train` by name, and `@evaluate` if there are evaluate tasks: one
    microbatch after the other. Under a method that does not flush the pipeline
    at every update, `@train` is 1F1B as one loop over the microbatches of all
    updates.

    ```mlir
    pipeline.schedule @train microbatches(4) {
      pipeline.order 0 {
        pipeline.repeat updates {
          pipeline.repeat times 4 {
            pipeline.run @s0.F ahead(1)
            pipeline.run @s0.B
          }
          pipeline.run @s0.U
        }
      }
      ...
    ```
  }];
  let options = [
    Option<"schedule", "schedule", "::penstock::schedule::ScheduleSpec", "",
           "The schedule, with parameters: interleaved:chunks=2">,
    ListOption<"speeds", "speeds", "double",
               "For zb-auto: speed of the device of each stage; none: they are "
               "equal">
  ];
  let dependentDialects = ["::penstock::pipeline::PipelineDialect"];
}

def PipelineImportSchedule
    : Pass<"pipeline-import-schedule", "::mlir::ModuleOp"> {
  let summary = "Reads the order of every device from a table";
  let description = [{
    A CSV file in the format of `torch.distributed.pipelining`: a row per
    device, an action per cell: stage, letter, microbatch. Places the stages as
    the table has them. Rows with `SEND_F`, `RECV_F`, `SEND_B`, `RECV_B` keep
    their transfers; those of others are placed by `pipeline-order-transfers`. A
    stage with r replicas stands in r rows, microbatch k in that of replica k
    modulo r.

    ```
    0F0,0F1,0B0,0B1
    1F0,1B0,1F1,1B1
    ```
  }];
  let options = [
    Option<"file", "file", "std::string", "\"\"", "The table">,
    ListOption<"replicas", "replicas", "int64_t",
               "Replicas of every stage, or one number per stage">
  ];
  let dependentDialects = ["::penstock::pipeline::PipelineDialect"];
}

def PipelineAssignVersions
    : Pass<"pipeline-assign-versions", "::mlir::ModuleOp"> {
  let summary = "Says which version every read of a weight sees";
  let description = [{
    The method of `pipeline.training` is a table of lags, one for forward and
    one for backward of each stage: microbatch k reads the weights as they were
    after max(0, floor((k - lag) / M)) updates. With a the number of
    microbatches that forward runs ahead of backward, which is read off the
    schedule:

    | method                  | forward     | backward | versions are kept by |
    |-------------------------|-------------|----------|----------------------|
    | sync                    | 0           | 0        |                      |
    | naive                   | a           | 0        |                      |
    | pipedream               | a           | a        | `weight_stash`       |
    | pipedream:vertical-sync | the most a  | same     | `weight_stash`       |
    | 2bw                     | M           | M        | `double_buffer`      |

    `sync` needs a schedule that flushes at every update, the others one loop
    over all microbatches.

    ```mlir
    %w = pipeline.read @fc1 : tensor<7x11xf32>
    // becomes
    %w = pipeline.read @fc1 lag(0) : tensor<7x11xf32>
    ```
  }];
  let dependentDialects = ["::penstock::pipeline::PipelineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PipelineOrderTransfers
    : Pass<"pipeline-order-transfers", "::mlir::ModuleOp"> {
  let summary = "Places sends, receives and sums in the orders";
  let description = [{
    All devices must agree on the sequence of transfers, since both ends block.
    It is read off a modulo schedule of the runs: a send stands behind its run,
    a receive is posted before the run during which the message gets ready. Data
    are fetched one microbatch ahead, results leave at once.

    ```mlir
    pipeline.repeat times 4 {
      pipeline.recv @x ahead(2)
      pipeline.run @s0.F ahead(1)
      pipeline.send @h2 ahead(1)
      pipeline.recv @dh2
      pipeline.run @s0.B
    }
    ```
  }];
  let options = [
    ListOption<"speeds", "speeds", "double",
               "Speed of the device of each stage; none: they are equal">
  ];
  let dependentDialects = ["::penstock::pipeline::PipelineDialect"];
}

def PipelineSizeStorage : Pass<"pipeline-size-storage", "::mlir::ModuleOp"> {
  let summary = "Sets slots, staging and version rings to the least that works";
  let description = [{
    By walking along the expanded orders of all schedules. Depths of
    `weight_stash` follow too; a stash that needs one version only is removed.
  }];
  let dependentDialects = ["::penstock::pipeline::PipelineDialect"];
}

def PipelineVerifySchedule
    : Pass<"pipeline-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "Proves rules S1 to S7 for segments of any length";
  let description = [{
    Walks along every device's order, with counters, and executes all devices,
    for as many segments as are different from longer ones. A deadlock shows
    what stands at the head of each device's queues.

    Rules:
    - **S1**: a segment of N updates executes F, B, I and W of a stage N*M/r
      times on each of its devices, U and G N times, and moves as many messages;
      counted along the loops, for all N, the numbers by walk.
    - **S2**: what an entry needs on its own device stands earlier: take after
      put or `recv`, send after its run, nothing filled that is still read or
      sent.
    - **S3**: a version that is read exists already, and still; it is as old as
      the method gives to the stage; no ring is longer than needed.
    - **S4**: update t is executed when exactly (t+1)*M/r executions of every
      task that writes its gradients are done.
    - **S5**: messages alive fit into `slots`, messages unsent into `staging`;
      no channel has more slots, and no variable more versions, than some
      segment uses.
    - **S6**: at the end every channel is empty.
    - **S7**: the execution of all devices ends; if not, what each queue waits
      for is shown.
    - **S10**: with waves of N updates and distance D, a push stands right
      behind the update that ends its wave, a fold of wave c behind the push of
      wave c + D, or the last one. It writes the version anew that the update
      has just made, and nobody reads that before: version v has max(0, floor(v
      / N) - D) whole waves of every other worker, and no more.
  }];
  let options = [
    Option<"remarks", "remarks", "bool", "false",
           "Say how many segments and steps it took">
  ];
}

def PipelineSimulate : Pass<"pipeline-simulate", "::mlir::ModuleOp"> {
  let summary = "Executes the training schedule with costs";
  let description = [{
    Sets `predicted_bubble` on the schedule: the idle share of the devices from
    the first to the last run of a segment; of a loop over the microbatches of
    all updates, the idle share once it is full. With `timeline`, draws it:

    ```
    @train, 1 update: makespan 10, bubble 20.0 %
      0: F0 F1 .  .  B0 F2 B1 F3 B2 .  B3 U
      1: .  F0 B0 F1 B1 .  F2 B2 F3 B3 U
    ```
  }];
  let options = [
    Option<"costs", "costs", "std::string", "\"unit\"",
           "unit: by kind of task, from the options below; analytic: "
           "arithmetic operations of the tasks' functions; measured: seconds "
           "in the module's attribute pipeline.stage_seconds">,
    Option<"forward", "forward", "double", "1.0", "Unit cost of forward">,
    Option<"backward", "backward", "double", "2.0",
           "Unit cost of backward; half of it for each half">,
    Option<"update", "update", "double", "0.0", "Unit cost of updates">,
    Option<"comm", "comm", "double", "0.0",
           "Cost of a transfer between devices">,
    Option<"updates", "updates", "int64_t", "1", "Updates in the segment">,
    Option<"timeline", "timeline", "bool", "false",
           "Draw the timeline on stdout">,
    ListOption<"speeds", "speeds", "double",
               "Speed of the device of each stage; none: they are equal">
  ];
  let dependentDialects = ["::penstock::pipeline::PipelineDialect"];
}

def PipelineReplay : Pass<"pipeline-replay", "::mlir::ModuleOp"> {
  let summary = "Adds the same training without a pipeline, for comparison";
  let description = [{
    A nested `module @replay` with clones of variables, channels, stages, tasks
    and declarations of their functions, under the schedule all forward, all
    backward in reverse, every update. Lags are those that the method has in the
    literature, from a table that nothing else reads; storage is sized anew. The
    replay runs on one device. Where a program has devices of several kinds, it
    runs on one of each, as no device has the functions of another kind.
  }];
  let dependentDialects = ["::penstock::pipeline::PipelineDialect",
                           "::mlir::func::FuncDialect"];
}

#endif // PENSTOCK_PASSES_SCHEDULE_PASSES_TD
