//===- ShareScratch.cpp - Temporaries and the scratch of the library ------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scratch of a library call is one more temporary of its kernel, alive at
// the call only: all of them are placed together in the kernel's last argument.
//===----------------------------------------------------------------------===//

#include "passes/Program/Memory/KernelMemory.h"
#include "passes/Program/Memory/PackTemporaries.h"
#include "passes/Program/Passes.h"
#include "penstock/Memory/Packing.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINESHARESCRATCH
#include "passes/Program/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

struct ShareScratchPass
    : public penstock::impl::PipelineShareScratchBase<ShareScratchPass> {
  void runOnOperation() override {
    // To look for the calls of each kernel takes time with the square of their
    // number.
    SymbolTableCollection tables;
    SymbolUserMap users(tables, getOperation());
    for (auto kernel : getOperation().getOps<func::FuncOp>())
      if (isOnBuffers(kernel) && failed(place(kernel, users)))
        return signalPassFailure();
  }

  /// Those on tensors are still there.
  static bool isOnBuffers(func::FuncOp function) {
    return !function.isDeclaration() &&
           llvm::none_of(llvm::concat<const Type>(function.getArgumentTypes(),
                                                  function.getResultTypes()),
                         llvm::IsaPred<TensorType>);
  }

  LogicalResult place(func::FuncOp kernel, const SymbolUserMap &users) {
    FailureOr<KernelMemory> memory = KernelMemory::get(kernel);
    if (failed(memory))
      return failure();
    if (memory->bytes == 0 && memory->calls.empty())
      return success();
    if (!users.useEmpty(kernel))
      return kernel.emitError("is called already: its temporaries are placed "
                              "before pipeline-lower-schedule");

    // 1. What is alive when. All calls at one position begin at the same byte.
    auto aligned = [](int64_t bytes) {
      return static_cast<int64_t>(llvm::alignTo(bytes, kTemporaryAlignment));
    };
    std::vector<MemoryBlock> blocks;
    for (const KernelMemory::Temporary &temporary : memory->temporaries)
      blocks.push_back(
          {aligned(temporary.bytes),
           std::min(temporary.first, std::max<int64_t>(temporary.last, 0)),
           std::max<int64_t>(temporary.last, 0)});
    llvm::DenseMap<int64_t, size_t> blockOf;
    for (const KernelMemory::LibraryCall &call : memory->calls) {
      auto [it, isNew] = blockOf.try_emplace(call.position, blocks.size());
      if (isNew)
        blocks.push_back({0, call.position, call.position});
      int64_t &bytes = blocks[it->second].bytes;
      bytes = std::max(bytes, aligned(call.bytes));
    }
    int64_t end = packBlocks(blocks);

    // 2. Where it is.
    OpBuilder builder(kernel.getContext());
    for (auto [temporary, block] : llvm::zip(memory->temporaries, blocks)) {
      builder.setInsertionPoint(temporary.view);
      temporary.view.getByteShiftMutable().assign(
          arith::ConstantIndexOp::create(builder, temporary.view.getLoc(),
                                         block.offset));
    }
    for (KernelMemory::LibraryCall &call : memory->calls)
      call.op.setScratchAttr(penstock::kernel::ScratchAttr::get(
          builder.getContext(), call.bytes,
          blocks[blockOf[call.position]].offset));

    // 3. The argument that holds it.
    auto type = MemRefType::get({end}, builder.getI8Type());
    if (memory->bytes == 0) {
      NamedAttrList attributes;
      attributes.append(pipeline::kScratchAttr, builder.getUnitAttr());
      return kernel.insertArgument(
          kernel.getNumArguments(), type,
          attributes.getDictionary(builder.getContext()), kernel.getLoc());
    }
    kernel.getArguments().back().setType(type);
    SmallVector<Type> types(kernel.getBody().front().getArgumentTypes());
    kernel.setFunctionType(
        builder.getFunctionType(types, kernel.getResultTypes()));
    return success();
  }
};

} // namespace
