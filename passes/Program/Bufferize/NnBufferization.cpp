//===- NnBufferization.cpp - Convolutions on buffers ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The upstream analysis learns what convolutions read and write: they stay ops,
// as the library computes them.
//===----------------------------------------------------------------------===//

#include "passes/Program/Bufferize/NnBufferization.h"

#include "dialects/Nn/Nn.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace penstock;
using namespace mlir::bufferization;

namespace {

/// `accumulates`: reads its destination, where others overwrite it.
template <typename Op, bool accumulates>
struct ConvModel
    : DstBufferizableOpInterfaceExternalModel<ConvModel<Op, accumulates>, Op> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    return accumulates || !cast<Op>(op).isDpsInit(&operand);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto conv = cast<Op>(op);
    SmallVector<Value> buffers;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      buffers.push_back(*buffer);
    }
    Op::create(rewriter, op->getLoc(), TypeRange(), buffers[0], buffers[1],
               buffers[2], conv.getStridesAttr(), conv.getDilationsAttr(),
               conv.getPadsAttr(), conv.getGroupsAttr());
    replaceOpWithBufferizedValues(rewriter, op, buffers[2]);
    return success();
  }
};

} // namespace

void penstock::registerNnBufferization(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NnDialect *) {
    nn::ConvOp::attachInterface<ConvModel<nn::ConvOp, false>>(*context);
    nn::ConvInputGradOp::attachInterface<ConvModel<nn::ConvInputGradOp, false>>(
        *context);
    nn::ConvWeightGradOp::attachInterface<
        ConvModel<nn::ConvWeightGradOp, true>>(*context);
  });
}
