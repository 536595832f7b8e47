//===- ShareScratch.cpp - Temporaries beside the scratch of the library ---===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Library calls take their scratch from the beginning of the region in which
// temporaries lie. What is not alive at such a call may lie in the same bytes.
//===----------------------------------------------------------------------===//

#include "passes/Program/KernelMemory.h"
#include "passes/Program/PackTemporaries.h"
#include "passes/Program/Packing.h"
#include "passes/Program/Passes.h"

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
  using PipelineShareScratchBase::PipelineShareScratchBase;

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      unsigned arguments = kernel.getNumArguments();
      bool hasScratch =
          !kernel.isDeclaration() && arguments > 0 &&
          kernel.getArgAttr(arguments - 1, pipeline::kScratchAttr);
      if (hasScratch && failed(place(kernel)))
        return signalPassFailure();
    }
  }

  LogicalResult place(func::FuncOp kernel) {
    if (!SymbolTable::symbolKnownUseEmpty(kernel, getOperation()))
      return kernel.emitError("is called already: its temporaries are placed "
                              "before pipeline-lower-schedule");
    FailureOr<KernelMemory> memory =
        KernelMemory::get(kernel, static_cast<int64_t>(threads));
    if (failed(memory))
      return failure();
    std::vector<MemoryBlock> blocks, calls;
    for (const KernelMemory::Temporary &temporary : memory->temporaries)
      blocks.push_back(
          {static_cast<int64_t>(
               llvm::alignTo(temporary.bytes, kTemporaryAlignment)),
           std::min(temporary.first, std::max<int64_t>(temporary.last, 0)),
           std::max<int64_t>(temporary.last, 0)});
    // All that is taken at one position begins at the same byte.
    llvm::DenseMap<int64_t, int64_t> most;
    for (const KernelMemory::LibraryCall &call : memory->calls)
      if (int64_t &bytes = most[call.position]; bytes < call.bytes)
        bytes = call.bytes;
    for (const KernelMemory::LibraryCall &call : memory->calls)
      if (int64_t bytes = most[call.position])
        calls.push_back(
            {static_cast<int64_t>(llvm::alignTo(bytes, kTemporaryAlignment)),
             call.position, call.position});
    packBlocks(blocks, calls);

    int64_t end = 0;
    OpBuilder builder(kernel.getContext());
    for (auto [temporary, block] :
         llvm::zip_equal(memory->temporaries, blocks)) {
      builder.setInsertionPoint(temporary.view);
      temporary.view.getByteShiftMutable().assign(
          arith::ConstantIndexOp::create(builder, temporary.view.getLoc(),
                                         block.offset));
      end = std::max(end, block.offset + block.bytes);
    }
    BlockArgument scratch = kernel.getArguments().back();
    scratch.setType(MemRefType::get({end}, builder.getI8Type()));
    SmallVector<Type> types(kernel.getBody().front().getArgumentTypes());
    kernel.setFunctionType(
        builder.getFunctionType(types, kernel.getResultTypes()));
    return success();
  }
};

} // namespace
