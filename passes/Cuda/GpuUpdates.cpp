//===- GpuUpdates.cpp - Blocks that find their update ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The blocks of a merged kernel are numbered through all of its buffers. A
// block finds its own by a search in the numbers, which all of its threads do
// alike, and computes as an elementwise kernel does.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/Alignment.h"
#include "passes/Cuda/KernelOp.h"
#include "passes/Cuda/LaunchSizes.h"
#include "passes/Cuda/Passes.h"
#include "passes/Cuda/ScalarBody.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEGPUUPDATES
#include "passes/Cuda/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

class UpdateMapper {
public:
  UpdateMapper(gpu::GPUFuncOp kernel, scf::ForallOp forall)
      : builder(forall), loc(forall.getLoc()), kernel(kernel), forall(forall) {}

  /// Returns whether the kernel is one of pipeline-merge-updates.
  bool isMerged();
  LogicalResult map();

private:
  /// Chooses among updates `begin` to `end`: the buffers of the block's, their
  /// number of elements and its first block.
  SmallVector<Value> choose(Value block, size_t begin, size_t end);
  linalg::GenericOp createOp(ArrayRef<Value> chosen);
  Value flatten(Value buffer);
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  OpBuilder builder;
  Location loc;
  gpu::GPUFuncOp kernel;
  scf::ForallOp forall;
  SmallVector<linalg::GenericOp> ops;
  /// The elements and the first block of each update.
  SmallVector<int64_t> elements, firstBlocks;
};

bool UpdateMapper::isMerged() {
  Block *body = forall.getBody();
  auto choice = dyn_cast<scf::IndexSwitchOp>(body->front());
  if (!choice || choice->getNextNode() != body->getTerminator())
    return false;
  for (Region &region : choice.getCaseRegions()) {
    auto op = dyn_cast<linalg::GenericOp>(region.front().front());
    if (!op || op->getNextNode() != region.front().getTerminator())
      return false;
    ops.push_back(op);
  }
  return !ops.empty();
}

/// All elements of a buffer in a row, as many as there are.
Value UpdateMapper::flatten(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  if (type.getRank() > 1) {
    auto all = llvm::to_vector<2>(llvm::seq<int64_t>(0, type.getRank()));
    buffer = memref::CollapseShapeOp::create(
        builder, loc, buffer, SmallVector<ReassociationIndices>{all});
  } else if (type.getRank() == 0) {
    buffer = memref::ExpandShapeOp::create(builder, loc, ArrayRef<int64_t>{1},
                                           buffer,
                                           SmallVector<ReassociationIndices>());
  }
  auto flat = MemRefType::get({ShapedType::kDynamic}, type.getElementType(),
                              AffineMap(), type.getMemorySpace());
  return memref::CastOp::create(builder, loc, flat, buffer);
}

SmallVector<Value> UpdateMapper::choose(Value block, size_t begin, size_t end) {
  if (end - begin == 1) {
    SmallVector<Value> result;
    for (Value operand : ops[begin]->getOperands())
      if (isa<MemRefType>(operand.getType()))
        result.push_back(flatten(operand));
    result.push_back(index(elements[begin]));
    result.push_back(index(firstBlocks[begin]));
    return result;
  }
  size_t middle = (begin + end) / 2;
  Value isBefore =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, block,
                            index(firstBlocks[middle]));
  SmallVector<Type> types;
  for (Value operand : ops[begin]->getOperands())
    if (auto type = dyn_cast<MemRefType>(operand.getType()))
      types.push_back(MemRefType::get({ShapedType::kDynamic},
                                      type.getElementType(), AffineMap(),
                                      type.getMemorySpace()));
  types.append(2, builder.getIndexType());
  auto branch = scf::IfOp::create(builder, loc, types, isBefore,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard outside(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc, choose(block, begin, middle));
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, choose(block, middle, end));
  return SmallVector<Value>(branch.getResults());
}

/// The update of the chosen buffers.
linalg::GenericOp UpdateMapper::createOp(ArrayRef<Value> chosen) {
  linalg::GenericOp model = ops.front();
  SmallVector<Value> operands;
  SmallVector<AffineMap> maps;
  for (Value operand : model->getOperands()) {
    bool isBuffer = isa<MemRefType>(operand.getType());
    operands.push_back(isBuffer ? chosen.front() : operand);
    maps.push_back(isBuffer ? builder.getMultiDimIdentityMap(1)
                            : AffineMap::get(1, 0, builder.getContext()));
    if (isBuffer)
      chosen = chosen.drop_front();
  }
  size_t inputs = model.getNumDpsInputs();
  auto op = linalg::GenericOp::create(
      builder, loc, TypeRange(), ArrayRef(operands).take_front(inputs),
      ArrayRef(operands).drop_front(inputs), maps,
      ArrayRef{utils::IteratorType::parallel});
  IRMapping mapping;
  model.getRegion().cloneInto(&op.getRegion(), mapping);
  return op;
}

LogicalResult UpdateMapper::map() {
  // 1. Blocks, those of each update by themselves.
  int64_t blocks = 0;
  bool isAligned = true;
  for (linalg::GenericOp op : ops) {
    int64_t count = ShapedType::getNumElements(op.getStaticLoopRanges());
    int64_t perBlock = kBlockThreads * kVectorElements;
    elements.push_back(count);
    firstBlocks.push_back(blocks);
    blocks += (count + perBlock - 1) / perBlock;
    for (Value operand : op->getOperands())
      isAligned &=
          !isa<MemRefType>(operand.getType()) || isParameterAligned(operand);
  }
  if (failed(setLaunchSizes(kernel, blocks, kBlockThreads)))
    return failure();

  // 2. The thread's vector.
  Value block = gpu::BlockIdOp::create(builder, loc, gpu::Dimension::x);
  Value thread = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
  SmallVector<Value> chosen = choose(block, 0, ops.size());
  Value first = chosen.pop_back_val(), count = chosen.pop_back_val();
  Value number = arith::AddIOp::create(
      builder, loc,
      arith::MulIOp::create(builder, loc,
                            arith::SubIOp::create(builder, loc, block, first),
                            index(kBlockThreads)),
      thread);
  Value begin =
      arith::MulIOp::create(builder, loc, number, index(kVectorElements));
  Value end =
      arith::AddIOp::create(builder, loc, begin, index(kVectorElements));
  Value isWhole = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule,
                                        end, count);
  auto branch = scf::IfOp::create(builder, loc, isWhole,
                                  /*withElseRegion=*/true);

  // 3. All of it, or what there is of it.
  builder.setInsertionPointToStart(branch.thenBlock());
  linalg::GenericOp whole = createOp(chosen);
  ScalarBody body(builder, whole, isAligned);
  body.writeVector({begin}, 0);
  whole.erase();
  builder.setInsertionPointToStart(branch.elseBlock());
  auto rest = scf::ForOp::create(builder, loc, begin, count, index(1));
  builder.setInsertionPointToStart(rest.getBody());
  linalg::GenericOp single = createOp(chosen);
  ScalarBody(builder, single).writeElement({rest.getInductionVar()});
  single.erase();
  forall.erase();
  return success();
}

struct GpuUpdatesPass : penstock::impl::PipelineGpuUpdatesBase<GpuUpdatesPass> {
  void runOnOperation() override {
    auto map = [](gpu::GPUFuncOp kernel, Operation *op) -> LogicalResult {
      auto forall = dyn_cast<scf::ForallOp>(op);
      if (!forall)
        return success();
      UpdateMapper mapper(kernel, forall);
      return mapper.isMerged() ? mapper.map() : success();
    };
    if (failed(mapKernels(getOperation(), map)))
      signalPassFailure();
  }
};

} // namespace
