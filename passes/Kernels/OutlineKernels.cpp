//===- OutlineKernels.cpp - Loops become functions, equal ones one --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stage is one function of hundreds of loops, on which several analyses of
// LLVM take quadratic time. Moved out, each is analyzed alone, and the loops of
// equal layers are compiled once. A call costs nothing beside a loop.
//===----------------------------------------------------------------------===//

#include "dialects/Kernel/Kernel.h"
#include "dialects/Nn/Convolution.h"
#include "dialects/Pipeline/Pipeline.h"
#include "passes/Kernels/KernelClass.h"
#include "passes/Kernels/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/StringMap.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEOUTLINEKERNELS
#include "passes/Kernels/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// Returns true if a value can be an operand of a function: a number, or a
/// buffer of which the address says all that its type does not.
bool canPass(Type type) {
  auto buffer = dyn_cast<MemRefType>(type);
  if (!buffer)
    return type.isIntOrIndexOrFloat();
  SmallVector<int64_t> strides;
  int64_t offset;
  return buffer.hasStaticShape() &&
         succeeded(buffer.getStridesAndOffset(strides, offset)) &&
         !ShapedType::isDynamic(offset) && !ShapedType::isDynamicShape(strides);
}

/// Where in its memory a buffer begins, if that is a number other than 0 that
/// `op` does not mind to be told: slices of one array make equal loops equal
/// functions then.
std::optional<int64_t> getShift(Operation *op, Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type)
    return std::nullopt;
  SmallVector<int64_t> strides;
  int64_t offset;
  bool minds = llvm::any_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    return op->isAncestor(user) && !isa<linalg::LinalgOp, memref::LoadOp>(user);
  });
  if (minds || failed(type.getStridesAndOffset(strides, offset)) || offset == 0)
    return std::nullopt;
  return offset;
}

/// `value`, seen as beginning at `offset`.
Value beginAt(OpBuilder &builder, Location loc, Value value,
              OpFoldResult offset) {
  auto type = cast<MemRefType>(value.getType());
  SmallVector<int64_t> strides;
  int64_t was;
  (void)type.getStridesAndOffset(strides, was);
  int64_t now = getConstantIntValue(offset).value_or(ShapedType::kDynamic);
  MLIRContext *context = builder.getContext();
  auto result = MemRefType::get(type.getShape(), type.getElementType(),
                                StridedLayoutAttr::get(context, now, strides),
                                type.getMemorySpace());
  return memref::ReinterpretCastOp::create(
      builder, loc, result, value, offset,
      getAsIndexOpFoldResult(context, type.getShape()),
      getAsIndexOpFoldResult(context, strides));
}

/// Loops that depend on nothing but what can be passed.
bool isKernel(Operation &op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  bool isLoop = linalgOp ? linalgOp.hasPureBufferSemantics()
                         : isa<scf::ForOp>(op) && op.getNumResults() == 0;
  if (!isLoop)
    return false;
  // Those take the device, which only the functions of a stage know.
  WalkResult result = op.walk([](Operation *inner) {
    bool calls = isa<CallOpInterface, kernel::LibraryCallOpInterface>(inner) ||
                 nn::Convolution::match(inner);
    return calls ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !result.wasInterrupted();
}

/// Inlined, a loop would be where it came from.
void forbidInlining(func::FuncOp function) {
  Builder builder(function.getContext());
  function->setAttr("passthrough", builder.getStrArrayAttr({"noinline"}));
}

class Outliner {
public:
  explicit Outliner(ModuleOp module) : module(module), symbols(module) {}

  /// Replaces `op` by a call, if all it needs can be passed.
  void outline(Operation *op);

private:
  /// The values from outside of `op`, in the order of their first use; those
  /// of constants apart.
  static void capture(Operation *op, SmallVectorImpl<Value> &values,
                      SmallVectorImpl<Operation *> &constants);

  ModuleOp module;
  SymbolTable symbols;
  /// Functions by their text without the name.
  llvm::StringMap<func::FuncOp> kernels;
};

void Outliner::capture(Operation *op, SmallVectorImpl<Value> &values,
                       SmallVectorImpl<Operation *> &constants) {
  llvm::SetVector<Value> used(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  for (Value value : used) {
    Operation *producer = value.getDefiningOp();
    if (producer && producer->hasTrait<OpTrait::ConstantLike>())
      constants.push_back(producer);
    else
      values.push_back(value);
  }
}

void Outliner::outline(Operation *op) {
  SmallVector<Value> values;
  SmallVector<Operation *> constants;
  capture(op, values, constants);
  if (!llvm::all_of(TypeRange(ValueRange(values)), canPass))
    return;

  // 1. What is passed: numbers say where slices begin.
  OpBuilder builder(op);
  Location loc = op->getLoc();
  SmallVector<Value> passed(values);
  SmallVector<unsigned> shifted;
  for (auto [index, value] : llvm::enumerate(values)) {
    std::optional<int64_t> shift = getShift(op, value);
    if (!shift)
      continue;
    shifted.push_back(index);
    passed[index] = beginAt(builder, loc, value, builder.getIndexAttr(0));
    passed.push_back(arith::ConstantIndexOp::create(builder, loc, *shift));
  }

  // 2. The function, without a name and beside the module.
  auto function = func::FuncOp::create(
      loc, "kernel",
      builder.getFunctionType(TypeRange(ValueRange(passed)), {}));
  function.setPrivate();
  if (pipeline::TargetAttrInterface target = pipeline::getTarget(op))
    function->setAttr(pipeline::kTargetAttr, target);
  forbidInlining(function);
  IRMapping mapping;
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  mapping.map(values, entry->getArguments().take_front(values.size()));
  for (auto [number, index] : llvm::enumerate(shifted))
    mapping.map(values[index],
                beginAt(builder, loc, entry->getArgument(index),
                        entry->getArgument(values.size() + number)));
  for (Operation *constant : constants)
    builder.clone(*constant, mapping);
  builder.clone(*op, mapping);
  func::ReturnOp::create(builder, loc);

  // 3. One of its kind. Locations are not in the text, and need not agree.
  std::string text;
  llvm::raw_string_ostream stream(text);
  function->print(stream, OpPrintingFlags().useLocalScope().assumeVerified());
  auto [entryOfText, isNew] = kernels.try_emplace(text, function);
  if (isNew) {
    auto parent = op->getParentOfType<func::FuncOp>();
    function.setSymName((parent.getSymName() + "." + getKernelClass(op)).str());
    symbols.insert(function, std::next(parent->getIterator()));
  } else {
    function.erase();
  }

  // 4. The call.
  builder.setInsertionPoint(op);
  func::CallOp::create(builder, loc, entryOfText->second, passed);
  op->erase();
}

struct OutlineKernelsPass
    : penstock::impl::PipelineOutlineKernelsBase<OutlineKernelsPass> {
  using PipelineOutlineKernelsBase::PipelineOutlineKernelsBase;

  void runOnOperation() override {
    Outliner outliner(getOperation());
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions) {
      if (function.isDeclaration() ||
          function->hasAttr(pipeline::kDeviceAttr) ||
          !pipeline::isOfKind(function, kind))
        continue;
      SmallVector<Operation *> loops;
      for (Block &block : function.getBody())
        for (Operation &op : block)
          if (isKernel(op))
            loops.push_back(&op);
      // A function of one loop is a kernel already.
      if (loops.size() == 1)
        forbidInlining(function);
      else
        llvm::for_each(loops, [&](Operation *op) { outliner.outline(op); });
    }
  }
};

} // namespace
