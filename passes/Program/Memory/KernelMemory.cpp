//===- KernelMemory.cpp - What a kernel has besides its arguments ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See KernelMemory.h. A temporary lives from its first use to its last; one
// that a loop uses, as long as the whole loop.
//===----------------------------------------------------------------------===//

#include "passes/Program/Memory/KernelMemory.h"

#include "dialects/Pipeline/Pipeline.h"
#include "passes/Program/Memory/PackTemporaries.h"
#include "penstock/Support/ByteSize.h"
#include "penstock/Target/Target.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace penstock;

int64_t penstock::getBufferBytes(Type type) {
  return getByteSize(cast<MemRefType>(type));
}

namespace {
class Uses {
public:
  explicit Uses(Block &entry) : entry(entry) {
    for (auto [position, op] : llvm::enumerate(entry))
      positions[&op] = static_cast<int64_t>(position);
  }

  int64_t getPosition(Operation *op) const {
    return positions.lookup(entry.findAncestorOpInBlock(*op));
  }
  /// First and last op that uses a buffer or a view of it.
  void extend(Value buffer, int64_t &first, int64_t &last) const {
    for (Operation *user : buffer.getUsers()) {
      if (isa<ViewLikeOpInterface>(user)) {
        for (Value result : user->getResults())
          extend(result, first, last);
        continue;
      }
      int64_t position = getPosition(user);
      first = std::min(first, position);
      // What else returns buffers may return this one.
      bool mayReturn =
          user->hasTrait<OpTrait::IsTerminator>() ||
          llvm::any_of(user->getResultTypes(), llvm::IsaPred<MemRefType>);
      last = std::max(last, mayReturn ? size() - 1 : position);
    }
  }
  int64_t size() const { return static_cast<int64_t>(positions.size()); }

private:
  Block &entry;
  llvm::DenseMap<Operation *, int64_t> positions;
};
} // namespace

FailureOr<KernelMemory> KernelMemory::get(func::FuncOp kernel) {
  KernelMemory result;
  if (kernel.isDeclaration())
    return result;
  Uses uses(kernel.getBody().front());
  unsigned arguments = kernel.getNumArguments();
  if (arguments > 0 &&
      kernel.getArgAttr(arguments - 1, pipeline::kScratchAttr)) {
    result.bytes = getBufferBytes(kernel.getArgumentTypes().back());
    // In the order of the kernel.
    auto users = llvm::to_vector(kernel.getArgument(arguments - 1).getUsers());
    for (Operation *user : llvm::reverse(users)) {
      auto view = dyn_cast<memref::ViewOp>(user);
      std::optional<int64_t> offset =
          view ? getConstantIntValue(view.getByteShift()) : std::nullopt;
      if (!offset)
        return user->emitError("uses temporary memory other than by a view at "
                               "a constant offset");
      Temporary &temporary = result.temporaries.emplace_back();
      temporary.view = view;
      temporary.offset = *offset;
      temporary.bytes = getBufferBytes(view.getType());
      temporary.first = uses.size();
      uses.extend(view, temporary.first, temporary.last);
    }
  }
  WalkResult walked =
      kernel.walk([&](penstock::kernel::LibraryCallOpInterface op) {
        FailureOr<LibraryPlan> plan = planCall(op);
        if (failed(plan))
          return WalkResult::interrupt();
        if (plan->scratchBytes > 0) {
          LibraryCall &call = result.calls.emplace_back();
          call.op = op;
          call.position = uses.getPosition(op);
          call.bytes = plan->scratchBytes;
        }
        return WalkResult::advance();
      });
  if (walked.wasInterrupted())
    return failure();
  return result;
}

int64_t KernelMemory::getPeak(int64_t alignment) const {
  int64_t positions = 0;
  for (const Temporary &temporary : temporaries)
    positions = std::max(positions, temporary.last + 1);
  for (const LibraryCall &call : calls)
    positions = std::max(positions, call.position + 1);
  std::vector<int64_t> change(positions + 1), library(positions);
  for (const Temporary &temporary : temporaries) {
    if (temporary.first > temporary.last)
      continue;
    auto bytes =
        static_cast<int64_t>(llvm::alignTo(temporary.bytes, alignment));
    change[temporary.first] += bytes;
    change[temporary.last + 1] -= bytes;
  }
  for (const LibraryCall &call : calls)
    library[call.position] = std::max(library[call.position], call.bytes);
  int64_t live = 0, peak = 0;
  for (auto [position, bytes] : llvm::enumerate(library))
    peak = std::max(peak, (live += change[position]) + bytes);
  return peak;
}

LogicalResult KernelMemory::verify() const {
  for (const Temporary &temporary : temporaries)
    if (temporary.offset < 0 || temporary.offset + temporary.bytes > bytes)
      return temporary.view->emitError("S9: ends at byte ")
             << temporary.offset + temporary.bytes << " of temporary memory of "
             << bytes;
  for (const LibraryCall &call : calls) {
    kernel::LibraryCallOpInterface op = call.op;
    kernel::ScratchAttr scratch = op.getScratchAttr();
    if (!scratch || scratch.getBytes() < call.bytes)
      return call.op->emitError("S9: takes ")
             << call.bytes << " bytes of scratch and has "
             << (scratch ? scratch.getBytes() : 0);
    int64_t begin = scratch.getOffset(), end = begin + scratch.getBytes();
    if (begin < 0 || begin % kTemporaryAlignment || end > bytes)
      return call.op->emitError("S9: has its scratch from byte ")
             << begin << " to " << end << " of temporary memory of " << bytes;
    for (const Temporary &temporary : temporaries)
      if (temporary.first <= call.position && call.position <= temporary.last &&
          temporary.offset < end && begin < temporary.offset + temporary.bytes)
        return temporary.view->emitError("S9: shares bytes with the scratch of "
                                         "a library call while it is in use");
  }
  return success();
}
