//===- DiscardableAttributes.h - Facts on ops and arguments -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The discardable attributes of the dialect, by what they are on. The dialect
// verifies that they are there, and have that type; the dialect describes them.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_PIPELINE_DISCARDABLEATTRIBUTES_H
#define PENSTOCK_DIALECTS_PIPELINE_DISCARDABLEATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace penstock::pipeline {

// On the module.

/// #pipeline.bytes<"f.onnx", 0, size>: the model file, that `--save` patches.
inline constexpr llvm::StringLiteral kModelAttr = "pipeline.model";
/// Convolutions add up the products of the definition.
inline constexpr llvm::StringLiteral kDirectConvolutionAttr =
    "pipeline.direct_convolution";
/// array<f64>: measured seconds of forward and backward of a microbatch, and
/// of an update, of every stage in order.
inline constexpr llvm::StringLiteral kStageSecondsAttr =
    "pipeline.stage_seconds";

/// The target of the devices that stages are cut for, until they are.
inline constexpr llvm::StringLiteral kPlanTargetAttr = "pipeline.plan_target";
/// array<f64>: what these devices do per second, until the schedule is made, if
/// they are others than the target supposes: operations in products, bytes of
/// memory and of caches (0: as memory) and between devices, and the seconds of
/// a transfer's latency.
inline constexpr llvm::StringLiteral kPlanRatesAttr = "pipeline.plan_rates";
/// array<i64>, until stages are cut: the microbatches of an update, and how
/// often it goes over a weight.
inline constexpr llvm::StringLiteral kPlanUpdateAttr = "pipeline.plan_update";

// On functions.

/// @s and d : i64: it is the program of device d under schedule s.
inline constexpr llvm::StringLiteral kScheduleAttr = "pipeline.schedule";
inline constexpr llvm::StringLiteral kDeviceAttr = "pipeline.device";
/// It is (base rate, updates done) -> rate of the next update.
inline constexpr llvm::StringLiteral kRateAttr = "pipeline.rate";
/// @stage: it is (rate, updates done) -> rate of that stage.
inline constexpr llvm::StringLiteral kRateOfAttr = "pipeline.rate_of";
/// A target, on a function: that of all devices that run it.
inline constexpr llvm::StringLiteral kTargetAttr = "pipeline.target";
/// array<f64>, on the forward function: forward, backward and update of every
/// unit, as measured, in place of the analytic costs.
inline constexpr llvm::StringLiteral kUnitSecondsAttr = "pipeline.unit_seconds";

/// The meaning of its arguments and results in the tasks that call it.
inline constexpr llvm::StringLiteral kSignatureAttr = "pipeline.signature";

// On arguments of functions.

/// i : i64: result i of the function is stored into this argument's buffer
/// (accumulators, optimizer state).
inline constexpr llvm::StringLiteral kIntoAttr = "pipeline.into";
/// Marks an argument of a kernel that is a result.
inline constexpr llvm::StringLiteral kOutAttr = "pipeline.out";
/// Marks the last argument of a kernel where it is temporary memory.
inline constexpr llvm::StringLiteral kScratchAttr = "pipeline.scratch";

// On what there is.

/// #pipeline.range, on a channel with a source: which integers it may carry.
inline constexpr llvm::StringLiteral kRangeAttr = "pipeline.range";
/// @w: the parameter that a variable belongs to or a channel carries.
inline constexpr llvm::StringLiteral kParameterAttr = "pipeline.parameter";
/// "momentum": what a variable is to its parameter, for files that other cuts,
/// methods and programs read.
inline constexpr llvm::StringLiteral kKindAttr = "pipeline.kind";
/// {name = #pipeline.bytes or #pipeline.transposed}, on a parameter: where
/// other initializers are that have its value, or that of a transpose.
inline constexpr llvm::StringLiteral kTiedAttr = "pipeline.tied";
/// r : i64, on a gradient of a program on one device: it is kept in so many
/// parts, as by the replicas of its stage. Microbatch k adds to part k modulo
/// that; a sum over the group adds the parts, leaves the sum in the first, the
/// others zero.
inline constexpr llvm::StringLiteral kPartsAttr = "pipeline.parts";
/// array<i64>, on a channel at `program`, if an end has several replicas: their
/// devices, none at a source or sink. Message k goes from and to number k
/// modulo theirs.
inline constexpr llvm::StringLiteral kSendersAttr = "pipeline.senders";
inline constexpr llvm::StringLiteral kReceiversAttr = "pipeline.receivers";
/// On a group: replicas of a stage have the same value, and only that of the
/// first is added.
inline constexpr llvm::StringLiteral kOnceAttr = "pipeline.once";
/// array<i64: f, b>, on a stage under an asynchronous method: how old what its
/// forward and its backward read is. They are not all to be seen in the reads,
/// as a backward may read no parameter.
inline constexpr llvm::StringLiteral kLagsAttr = "pipeline.lags";

/// array<i64: v, V>, on a channel with a source or a sink: message n is of
/// microbatch n * V + v, as it is that of worker v of V.
inline constexpr llvm::StringLiteral kTurnAttr = "pipeline.turn";

// On what is done.

/// On a backward, input_grad or weight_grad task: it runs ops of the forward
/// again that read parameters.
inline constexpr llvm::StringLiteral kRecomputesAttr = "pipeline.recomputes";
/// v : i64, on `compensate` in an update: from this version on. Earlier ones
/// stay as they are.
inline constexpr llvm::StringLiteral kCompensatesFromAttr =
    "pipeline.compensates_from";
/// @w, on the owner's copy of a parameter that it sends to other stages, whose
/// copy it is: not to be evaluated by those themselves.
inline constexpr llvm::StringLiteral kSentAttr = "pipeline.sent";

} // namespace penstock::pipeline

#endif // PENSTOCK_DIALECTS_PIPELINE_DISCARDABLEATTRIBUTES_H
