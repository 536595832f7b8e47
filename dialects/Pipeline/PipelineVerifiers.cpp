//===- PipelineVerifiers.cpp - Rules of single ops --------------------------
//===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules that one op can check by itself or with its parent.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Pipeline.h"

using namespace mlir;
using namespace penstock::pipeline;

LogicalResult BytesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                StringRef file, int64_t offset,
                                int64_t length) {
  if (file.empty())
    return emitError() << "a byte range needs a file name";
  if (offset < 0 || length < 0)
    return emitError() << "a byte range cannot be negative, got offset "
                       << offset << " and length " << length;
  return success();
}

LogicalResult PipelineDialect::verifyOperationAttribute(Operation *op,
                                                        NamedAttribute attr) {
  return success();
}

LogicalResult PipelineDialect::verifyRegionArgAttribute(Operation *op,
                                                        unsigned region,
                                                        unsigned argument,
                                                        NamedAttribute attr) {
  return success();
}

LogicalResult VariableOp::verify() { return success(); }
LogicalResult WeightStashOp::verify() { return success(); }
LogicalResult DoubleBufferOp::verify() { return success(); }
LogicalResult ChannelOp::verify() { return success(); }
LogicalResult StageOp::verify() { return success(); }
LogicalResult GroupOp::verify() { return success(); }
LogicalResult TaskOp::verify() { return success(); }
LogicalResult BoundaryOp::verify() { return success(); }
LogicalResult TakeOp::verify() { return success(); }
LogicalResult PutOp::verify() { return success(); }
LogicalResult ReadOp::verify() { return success(); }
LogicalResult WriteOp::verify() { return success(); }
LogicalResult CompensateOp::verify() { return success(); }
LogicalResult PredictOp::verify() { return success(); }
LogicalResult HyperparameterOp::verify() { return success(); }
LogicalResult ScheduleOp::verify() { return success(); }
LogicalResult OrderOp::verify() { return success(); }
LogicalResult RepeatOp::verify() { return success(); }
LogicalResult RunOp::verify() { return success(); }
LogicalResult SendOp::verify() { return success(); }
LogicalResult RecvOp::verify() { return success(); }
LogicalResult AllReduceOp::verify() { return success(); }
LogicalResult ArenaOp::verify() { return success(); }
LogicalResult SlotOp::verify() { return success(); }
LogicalResult ScratchOp::verify() { return success(); }
LogicalResult StartRecvOp::verify() { return success(); }
LogicalResult StartSendOp::verify() { return success(); }
LogicalResult StartAllReduceOp::verify() { return success(); }
LogicalResult AwaitOp::verify() { return success(); }
LogicalResult MarkOp::verify() { return success(); }
LogicalResult GemmOp::verify() { return success(); }
