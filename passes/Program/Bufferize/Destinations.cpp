//===- Destinations.cpp - What tensors are written into -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Destinations that several ops share would become copies, or be overwritten
// while they are needed; those that nobody needs can be taken over. A tensor of
// many slices is a buffer at once, as upstream's analysis takes time with the
// third power of their number.
//===----------------------------------------------------------------------===//

#include "passes/Program/Bufferize/Destinations.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock;

namespace {

/// Insertions into one tensor before it becomes a buffer of its own.
constexpr size_t longAssembly = 16;

/// A destination that two ops share would turn into a copy: each gets its own.
void unshareDestinations(func::FuncOp kernel) {
  bool changed = true;
  while (changed) {
    changed = false;
    kernel.walk([&](DestinationStyleOpInterface op) {
      for (OpOperand &init : op.getDpsInitsMutable()) {
        Operation *source = init.get().getDefiningOp();
        if (!isa_and_nonnull<tensor::EmptyOp, linalg::FillOp>(source) ||
            source->hasOneUse())
          continue;
        OpBuilder builder(op);
        init.set(builder.clone(*source)->getResult(0));
        changed = true;
      }
    });
  }
}

/// Returns true if something besides `use` may keep the buffer of its value: a
/// result of the function, a view, or another op that writes into it.
bool isBufferShared(OpOperand &use, const bufferization::AnalysisState &state) {
  return llvm::any_of(use.get().getUses(), [&](OpOperand &other) {
    Operation *owner = other.getOwner();
    return &other != &use &&
           (isa<bufferization::MaterializeInDestinationOp>(owner) ||
            (isa<bufferization::BufferizableOpInterface>(owner) &&
             state.getAliasingValues(other).getNumAliases() > 0));
  });
}

Value emitCopy(OpBuilder &builder, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Value own = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                      type.getElementType());
  return linalg::CopyOp::create(builder, loc, value, own).getResult(0);
}

/// Insertions into each other's results, of which nothing else is used.
struct Assembly {
  SmallVector<tensor::InsertSliceOp> parts;
  /// The destination of the first one: fresh, or filled.
  Operation *start = nullptr;
};

/// Returns the next op that writes into the result of `op`, if that is its only
/// use.
tensor::InsertSliceOp getNext(tensor::InsertSliceOp op) {
  if (!op->hasOneUse())
    return {};
  auto next = dyn_cast<tensor::InsertSliceOp>(*op->user_begin());
  bool follows = next && next.getDest() == op.getResult() &&
                 next->getBlock() == op->getBlock();
  return follows ? next : tensor::InsertSliceOp();
}

bool areDisjoint(tensor::InsertSliceOp one, tensor::InsertSliceOp other) {
  for (auto [offset, size, otherOffset, otherSize] :
       llvm::zip_equal(one.getStaticOffsets(), one.getStaticSizes(),
                       other.getStaticOffsets(), other.getStaticSizes()))
    if (offset + size <= otherOffset || otherOffset + otherSize <= offset)
      return true;
  return false;
}

/// Returns true if the parts may be written in any order.
bool areIndependent(ArrayRef<tensor::InsertSliceOp> parts) {
  for (auto [index, part] : llvm::enumerate(parts)) {
    tensor::InsertSliceOp op = part;
    if (!op.hasUnitStride() ||
        llvm::any_of(op.getStaticOffsets(), ShapedType::isDynamic) ||
        llvm::any_of(op.getStaticSizes(), ShapedType::isDynamic) ||
        !llvm::all_of(parts.take_front(index),
                      [&](tensor::InsertSliceOp before) {
                        return areDisjoint(op, before);
                      }))
      return false;
  }
  return true;
}

/// Returns true if the parts, which are disjoint, overwrite all of their
/// destination.
bool isCovered(const Assembly &assembly) {
  int64_t elements = 0;
  for (tensor::InsertSliceOp part : assembly.parts)
    elements += part.getSourceType().getNumElements();
  tensor::InsertSliceOp last = assembly.parts.back();
  return elements == last.getResultType().getNumElements();
}

bool isFresh(Operation *start) {
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(start))
    return matchPattern(fill.getInputs().front(), m_Constant());
  return isa_and_nonnull<tensor::EmptyOp>(start);
}

/// The assembly that ends with `last`, if it is a long one.
std::optional<Assembly> findAssembly(tensor::InsertSliceOp last) {
  Assembly assembly;
  assembly.parts = {last};
  Value start = last.getDest();
  while (auto before = start.getDefiningOp<tensor::InsertSliceOp>()) {
    if (getNext(before) != assembly.parts.back())
      break;
    assembly.parts.push_back(before);
    start = before.getDest();
  }
  std::reverse(assembly.parts.begin(), assembly.parts.end());
  assembly.start = start.getDefiningOp();
  if (assembly.parts.size() < longAssembly || !isFresh(assembly.start) ||
      !areIndependent(assembly.parts))
    return std::nullopt;
  return assembly;
}

/// The buffer in which `value`, a result of the kernel, is to end up, before
/// everything else in the kernel; null if it is none.
Value takeResultBuffer(func::FuncOp kernel, Value value) {
  for (Operation *user : value.getUsers()) {
    auto result = dyn_cast<bufferization::MaterializeInDestinationOp>(user);
    if (!result || !result.getRestrict())
      continue;
    Value buffer = result.getDest();
    // Reshapes of an argument: they may come first.
    SmallVector<Operation *> views;
    for (Operation *view = buffer.getDefiningOp(); view;
         view = view->getOperand(0).getDefiningOp())
      views.push_back(view);
    Block &entry = kernel.getBody().front();
    for (Operation *view : views)
      view->moveBefore(&entry, entry.begin());
    result.erase();
    return buffer;
  }
  return {};
}

/// Makes one buffer, at the start of the kernel, of all parts: what computes
/// them can write into it.
void assemble(func::FuncOp kernel, const Assembly &assembly) {
  tensor::InsertSliceOp last = assembly.parts.back();
  Location loc = last.getLoc();
  Value buffer = takeResultBuffer(kernel, last.getResult());
  Block &entry = kernel.getBody().front();
  Operation *first = buffer ? buffer.getDefiningOp() : nullptr;
  OpBuilder start = first ? OpBuilder(first->getBlock(), ++first->getIterator())
                          : OpBuilder::atBlockBegin(&entry);
  RankedTensorType type = last.getResultType();
  if (!buffer)
    buffer = memref::AllocOp::create(
        start, loc, MemRefType::get(type.getShape(), type.getElementType()));
  auto fill = dyn_cast<linalg::FillOp>(assembly.start);
  if (fill && !isCovered(assembly)) {
    Operation *number = fill.getInputs().front().getDefiningOp();
    linalg::FillOp::create(start, loc, start.clone(*number)->getResult(0),
                           buffer);
  }

  bufferization::BufferizationOptions options; // The state refers to them.
  bufferization::AnalysisState state(options);
  OpBuilder end(last);
  for (tensor::InsertSliceOp part : assembly.parts) {
    Value view = memref::SubViewOp::create(
        start, loc,
        memref::SubViewOp::inferRankReducedResultType(
            part.getSourceType().getShape(), cast<MemRefType>(buffer.getType()),
            part.getStaticOffsets(), part.getStaticSizes(),
            part.getStaticStrides()),
        buffer, part.getMixedOffsets(), part.getMixedSizes(),
        part.getMixedStrides());
    Value source = part.getSource();
    if (isBufferShared(part.getSourceMutable(), state))
      source = emitCopy(end, loc, source);
    auto written = bufferization::MaterializeInDestinationOp::create(
        end, loc, Type(), source, view);
    written.setRestrict(true);
    written.setWritable(true);
  }
  Value whole = bufferization::ToTensorOp::create(end, loc, type, buffer,
                                                  /*restrict=*/true);
  last.getResult().replaceAllUsesWith(whole);
  for (tensor::InsertSliceOp part : llvm::reverse(assembly.parts))
    part.erase();
}

void assembleSlices(func::FuncOp kernel) {
  SmallVector<Assembly> assemblies;
  for (auto op : kernel.getBody().front().getOps<tensor::InsertSliceOp>())
    if (!getNext(op))
      if (std::optional<Assembly> assembly = findAssembly(op))
        assemblies.push_back(std::move(*assembly));
  for (const Assembly &assembly : assemblies)
    assemble(kernel, assembly);
}

/// The upstream pass puts a result of the function, and all that it is written
/// into, at once into the result's buffer, but its analysis does not know that
/// this buffer is one with the tensors there. So no other result may be built
/// from the same tensors: where one is, it gets its own.
void separateResults(func::FuncOp kernel) {
  bufferization::BufferizationOptions options; // The state refers to them.
  bufferization::AnalysisState state(options);
  SmallVector<Value> values;
  kernel.walk([&](bufferization::MaterializeInDestinationOp op) {
    if (op.getRestrict()) // The buffer is that of this result alone.
      values.push_back(op.getSource());
  });
  while (!values.empty()) {
    auto result = dyn_cast<OpResult>(values.pop_back_val());
    if (!result ||
        !isa<bufferization::BufferizableOpInterface>(result.getOwner()))
      continue;
    for (const bufferization::AliasingOpOperand &alias :
         state.getAliasingOpOperands(result)) {
      OpOperand &use = *alias.opOperand;
      if (use.getOwner() != result.getOwner())
        continue;
      Operation *producer = use.get().getDefiningOp();
      if (producer && state.bufferizesToMemoryWrite(use) &&
          isBufferShared(use, state)) {
        OpBuilder builder(result.getOwner());
        // To make it once more is less than to copy it.
        bool isCheap =
            isa<tensor::EmptyOp, linalg::FillOp, tensor::InsertSliceOp>(
                producer);
        use.set(isCheap ? builder.clone(*producer)->getResult(0)
                        : emitCopy(builder, result.getLoc(), use.get()));
      }
      values.push_back(use.get());
    }
  }
}

/// Ops in a row that may compute in one buffer. All reads and writes of a
/// buffer are compared by upstream's analysis, for each op that writes it.
constexpr unsigned longestReuse = 64;

/// An elementwise op whose destination is fresh takes over the buffer of an
/// operand that nothing else needs: less memory to touch.
void reuseOperands(func::FuncOp kernel) {
  llvm::DenseMap<Value, unsigned> reuses;
  kernel.walk([&](linalg::GenericOp op) {
    if (op.getNumParallelLoops() != op.getNumLoops())
      return;
    for (OpOperand &init : op.getDpsInitsMutable()) {
      if (!init.get().getDefiningOp<tensor::EmptyOp>())
        continue;
      AffineMap map = op.getMatchingIndexingMap(&init);
      for (OpOperand *input : op.getDpsInputOperands()) {
        Value value = input->get();
        auto producer = value.getDefiningOp<DestinationStyleOpInterface>();
        bool taken = llvm::is_contained(op.getDpsInits(), value);
        if (!producer || producer->getBlock() != op->getBlock() || taken ||
            !value.hasOneUse() || value.getType() != init.get().getType() ||
            !map.isPermutation() || op.getMatchingIndexingMap(input) != map ||
            reuses.lookup(value) == longestReuse)
          continue;
        reuses[op.getTiedOpResult(&init)] = reuses.lookup(value) + 1;
        init.set(value);
        break;
      }
    }
  });
}

} // namespace

void penstock::chooseDestinations(func::FuncOp kernel) {
  unshareDestinations(kernel);
  assembleSlices(kernel);
  separateResults(kernel);
  reuseOperands(kernel);
}
