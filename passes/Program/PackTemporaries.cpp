//===- PackTemporaries.cpp - One block of bytes for temporaries -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// First fit, largest first, on live ranges counted in ops of the entry block.
// A temporary lives from its first use to its last; one that a loop uses, as
// long as the whole loop.
//===----------------------------------------------------------------------===//

#include "passes/Program/PackTemporaries.h"

#include "dialects/Pipeline/Pipeline.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace penstock;

namespace {

/// A cache line, and the widest vector.
constexpr int64_t alignment = 64;

struct Temporary {
  memref::AllocOp alloc;
  int64_t bytes;
  /// Positions, in the entry block, of the first and the last op that use it.
  int64_t first, last;
  int64_t offset = 0;

  bool meets(const Temporary &other) const {
    return first <= other.last && other.first <= last;
  }
};

int64_t bytesOf(MemRefType type) {
  int64_t bits = type.getElementType().isIndex()
                     ? 64
                     : type.getElementType().getIntOrFloatBitWidth();
  return type.getNumElements() * llvm::divideCeil(bits, 8);
}

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

/// Gives every temporary its offset; returns the size of the block.
int64_t assignOffsets(MutableArrayRef<Temporary> temporaries) {
  SmallVector<Temporary *> order;
  for (Temporary &temporary : temporaries)
    order.push_back(&temporary);
  // Equal sizes in program order: pointers into one array.
  llvm::sort(order, [](const Temporary *a, const Temporary *b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a < b;
  });

  int64_t size = 0;
  SmallVector<const Temporary *> placed; // by offset
  for (Temporary *temporary : order) {
    int64_t offset = 0;
    for (const Temporary *other : placed)
      if (temporary->meets(*other) && other->offset < offset + temporary->bytes)
        offset = std::max(offset, other->offset + other->bytes);
    temporary->offset = offset;
    placed.insert(llvm::upper_bound(placed, temporary,
                                    [](const Temporary *a, const Temporary *b) {
                                      return a->offset < b->offset;
                                    }),
                  temporary);
    size = std::max(size, offset + temporary->bytes);
  }
  return size;
}

} // namespace

LogicalResult penstock::packTemporaries(func::FuncOp function) {
  Block &entry = function.getBody().front();
  llvm::DenseMap<Operation *, int64_t> positions;
  for (auto [position, op] : llvm::enumerate(entry))
    positions[&op] = position;

  SmallVector<memref::AllocOp> allocs;
  function.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
  SmallVector<Temporary> temporaries;
  for (memref::AllocOp alloc : allocs) {
    MemRefType type = alloc.getType();
    if (!type.hasStaticShape() || !type.getLayout().isIdentity())
      return alloc.emitOpError("internal error: a temporary of dynamic size");
    if (alloc->getParentOfType<scf::ForallOp>()) {
      OpBuilder builder(alloc);
      Value alloca = memref::AllocaOp::create(
          builder, alloc.getLoc(), type, builder.getI64IntegerAttr(alignment));
      alloc.replaceAllUsesWith(alloca);
      alloc.erase();
      continue;
    }
    int64_t first = firstUse(alloc, entry, positions);
    int64_t bytes = llvm::alignTo(bytesOf(type), alignment);
    temporaries.push_back({alloc, bytes, first,
                           std::max(first, lastUse(alloc, entry, positions))});
  }
  int64_t size = assignOffsets(temporaries);
  if (temporaries.empty())
    return success();

  OpBuilder builder = OpBuilder::atBlockBegin(&entry);
  auto scratchType = MemRefType::get({size}, builder.getI8Type());
  NamedAttrList attributes;
  attributes.append(pipeline::kScratchAttr, builder.getUnitAttr());
  if (failed(function.insertArgument(
          function.getNumArguments(), scratchType,
          attributes.getDictionary(builder.getContext()), function.getLoc())))
    return failure();
  Value scratch = function.getArguments().back();
  for (Temporary &temporary : temporaries) {
    Location loc = temporary.alloc.getLoc();
    Value offset =
        arith::ConstantIndexOp::create(builder, loc, temporary.offset);
    Value view = memref::ViewOp::create(builder, loc, temporary.alloc.getType(),
                                        scratch, offset, ValueRange());
    temporary.alloc.replaceAllUsesWith(view);
    temporary.alloc.erase();
  }
  return success();
}
