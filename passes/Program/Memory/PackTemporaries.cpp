//===- PackTemporaries.cpp - One block of bytes for temporaries -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packs live ranges counted in ops of the entry block, without regard to the
// library, whose calls come later (pipeline-share-scratch).
// A temporary lives from its first use to its last; one that a loop uses, as
// long as the whole loop.
//===----------------------------------------------------------------------===//

#include "passes/Program/Memory/PackTemporaries.h"

#include "dialects/Pipeline/Pipeline.h"
#include "passes/Program/Memory/KernelMemory.h"
#include "penstock/Memory/Packing.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace penstock;

namespace {

/// The last position at which `value`, or a view of it, is used.
int64_t lastUse(Value value, Block &entry,
                const llvm::DenseMap<Operation *, int64_t> &positions) {
  int64_t last = 0;
  for (Operation *user : value.getUsers()) {
    last = std::max(last, positions.lookup(entry.findAncestorOpInBlock(*user)));
    bool isView = isa<ViewLikeOpInterface>(user);
    for (Value result : user->getResults()) {
      if (!isa<MemRefType>(result.getType()))
        continue;
      // What else returns buffers may return this one.
      last = std::max(last, isView ? lastUse(result, entry, positions)
                                   : positions.lookup(entry.getTerminator()));
    }
    if (user->hasTrait<OpTrait::IsTerminator>())
      last = positions.lookup(entry.getTerminator());
  }
  return last;
}

/// The first position at which `value`, or a view of it, is used: before that
/// it holds nothing.
int64_t firstUse(Value value, Block &entry,
                 const llvm::DenseMap<Operation *, int64_t> &positions) {
  int64_t first = positions.lookup(entry.getTerminator());
  for (Operation *user : value.getUsers()) {
    int64_t position =
        isa<ViewLikeOpInterface>(user) && user->getNumResults() == 1
            ? firstUse(user->getResult(0), entry, positions)
            : positions.lookup(entry.findAncestorOpInBlock(*user));
    first = std::min(first, position);
  }
  return first;
}

} // namespace

LogicalResult penstock::packTemporaries(func::FuncOp function) {
  Block &entry = function.getBody().front();
  llvm::DenseMap<Operation *, int64_t> positions;
  for (auto [position, op] : llvm::enumerate(entry))
    positions[&op] = position;

  SmallVector<memref::AllocOp> allocs;
  function.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
  SmallVector<memref::AllocOp> temporaries;
  SmallVector<MemoryBlock> blocks;
  for (memref::AllocOp alloc : allocs) {
    MemRefType type = alloc.getType();
    if (!type.hasStaticShape() || !type.getLayout().isIdentity())
      return alloc.emitOpError("internal error: a temporary of dynamic size");
    if (alloc->getParentOfType<scf::ForallOp>()) {
      OpBuilder builder(alloc);
      Value alloca = memref::AllocaOp::create(
          builder, alloc.getLoc(), type,
          builder.getI64IntegerAttr(kTemporaryAlignment));
      alloc.replaceAllUsesWith(alloca);
      alloc.erase();
      continue;
    }
    int64_t first = firstUse(alloc, entry, positions);
    auto bytes = static_cast<int64_t>(
        llvm::alignTo(getBufferBytes(type), kTemporaryAlignment));
    temporaries.push_back(alloc);
    blocks.push_back(
        {bytes, first, std::max(first, lastUse(alloc, entry, positions))});
  }
  if (temporaries.empty())
    return success();
  int64_t size = packBlocks(blocks);

  OpBuilder builder = OpBuilder::atBlockBegin(&entry);
  auto scratchType = MemRefType::get({size}, builder.getI8Type());
  NamedAttrList attributes;
  attributes.append(pipeline::kScratchAttr, builder.getUnitAttr());
  if (failed(function.insertArgument(
          function.getNumArguments(), scratchType,
          attributes.getDictionary(builder.getContext()), function.getLoc())))
    return failure();
  Value scratch = function.getArguments().back();
  for (auto [alloc, block] : llvm::zip_equal(temporaries, blocks)) {
    Location loc = alloc.getLoc();
    // The first op may be the allocation that has just been replaced.
    builder.setInsertionPointToStart(&entry);
    Value offset = arith::ConstantIndexOp::create(builder, loc, block.offset);
    Value view = memref::ViewOp::create(builder, loc, alloc.getType(), scratch,
                                        offset, ValueRange());
    alloc.replaceAllUsesWith(view);
    alloc.erase();
  }
  return success();
}
