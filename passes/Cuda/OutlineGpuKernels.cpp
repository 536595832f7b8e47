//===- OutlineGpuKernels.cpp - Ops on buffers become GPU kernels ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Divides a stage's function between host and device: the host calls libraries,
// computes numbers and addresses, and launches kernels; these do whatever loads
// or stores. Equal kernels, as those of equal layers, are compiled once.
//===----------------------------------------------------------------------===//

#include "dialects/Cuda/Cuda.h"
#include "passes/Cuda/Alignment.h"
#include "passes/Cuda/HostLoops.h"
#include "passes/Cuda/KernelOp.h"
#include "passes/Cuda/Passes.h"
#include "passes/Kernels/KernelClass.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/StringMap.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEOUTLINEGPUKERNELS
#include "passes/Cuda/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// Global memory, as NVPTX numbers address spaces.
constexpr int64_t kGlobalMemory = 1;

/// A copy is a loop, too.
Operation *toKernelOp(Operation *op) {
  auto copy = dyn_cast<memref::CopyOp>(op);
  if (!copy)
    return op;
  OpBuilder builder(op);
  auto result = linalg::CopyOp::create(builder, copy.getLoc(), copy.getSource(),
                                       copy.getTarget());
  copy.erase();
  return result;
}

/// Returns whether one of the loops of the op has no iteration.
bool doesNothing(Operation *op) {
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return llvm::is_contained(structured.getStaticLoopRanges(), 0);
  auto forall = dyn_cast<scf::ForallOp>(op);
  if (!forall)
    return false;
  for (auto [lower, upper] : llvm::zip_equal(forall.getMixedLowerBound(),
                                             forall.getMixedUpperBound())) {
    std::optional<int64_t> from = getConstantIntValue(lower),
                           to = getConstantIntValue(upper);
    if (from && to && *from >= *to)
      return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The type of a buffer in a kernel, which sees it from its first element on;
/// null where its shape or strides are not constant.
MemRefType getParameterType(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!type.hasStaticShape() ||
      failed(type.getStridesAndOffset(strides, offset)) ||
      ShapedType::isDynamicShape(strides))
    return {};
  MLIRContext *context = type.getContext();
  MemRefLayoutAttrInterface layout;
  if (strides != computeSuffixProduct(type.getShape()))
    layout = StridedLayoutAttr::get(context, 0, strides);
  Type index = IntegerType::get(context, 64);
  return MemRefType::get(type.getShape(), type.getElementType(), layout,
                         IntegerAttr::get(index, kGlobalMemory));
}

/// Gives a view the type that follows from its source, which has moved to
/// another address space and begins at another offset.
LogicalResult updateViewType(Operation *op) {
  if (llvm::none_of(op->getResultTypes(), llvm::IsaPred<MemRefType>))
    return success();
  MemRefType type;
  if (auto slice = dyn_cast<memref::SubViewOp>(op)) {
    type = memref::SubViewOp::inferRankReducedResultType(
        slice.getType().getShape(), slice.getSourceType(),
        slice.getMixedOffsets(), slice.getMixedSizes(),
        slice.getMixedStrides());
  } else if (auto expand = dyn_cast<memref::ExpandShapeOp>(op)) {
    FailureOr<MemRefType> expanded = memref::ExpandShapeOp::computeExpandedType(
        expand.getSrcType(), expand.getResultType().getShape(),
        expand.getReassociationIndices());
    if (succeeded(expanded))
      type = *expanded;
  } else if (auto collapse = dyn_cast<memref::CollapseShapeOp>(op)) {
    type = memref::CollapseShapeOp::computeCollapsedType(
        collapse.getSrcType(), collapse.getReassociationIndices());
  }
  if (!type)
    return op->emitOpError("has no form within a GPU kernel");
  op->getResult(0).setType(type);
  return success();
}

class Outliner {
public:
  explicit Outliner(ModuleOp module) : module(module), symbols(module) {}

  LogicalResult outlineWithin(func::FuncOp function) {
    auto target =
        dyn_cast_or_null<cuda::TargetAttr>(pipeline::getTarget(function));
    isPlain = target && target.getPlain();
    return outlineWithin(function.getBody());
  }

private:
  /// Moves what touches buffers out of a function or loop of the host.
  LogicalResult outlineWithin(Region &region);
  LogicalResult outline(Operation *op);
  /// A kernel that does what `op` does with these values, without a name and
  /// beside the module.
  FailureOr<gpu::GPUFuncOp> createKernel(Operation *op, ValueRange values,
                                         ArrayRef<Operation *> constants);
  /// True if the kernels of the current function map elements to threads.
  bool isPlain = false;
  LogicalResult copyGlobal(memref::GetGlobalOp use);
  gpu::GPUModuleOp getModule(pipeline::TargetAttrInterface target);

  ModuleOp module;
  SymbolTable symbols;
  gpu::GPUModuleOp kernels;
  std::optional<SymbolTable> kernelSymbols;
  /// Kernels by their text without the name.
  llvm::StringMap<gpu::GPUFuncOp> known;
};

gpu::GPUModuleOp Outliner::getModule(pipeline::TargetAttrInterface target) {
  if (kernels)
    return kernels;
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  kernels =
      gpu::GPUModuleOp::create(builder, module.getLoc(), cuda::kKernelsModule);
  module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                  builder.getUnitAttr());
  if (isa_and_nonnull<cuda::TargetAttr>(target))
    kernels->setAttr(cuda::kKernelsTargetAttr, target);
  kernelSymbols.emplace(kernels);
  return kernels;
}

LogicalResult Outliner::outlineWithin(Region &region) {
  for (Block &block : region)
    for (Operation &op : llvm::make_early_inc_range(block)) {
      HostContents contents = getHostContents(&op);
      if (isKernelOp(&op)) {
        if (contents.calls)
          return op.emitOpError("calls a library within a GPU kernel");
        if (failed(outline(toKernelOp(&op))))
          return failure();
      } else if (isHostLoop(&op)) {
        for (Region &inner : op.getRegions())
          if (failed(outlineWithin(inner)))
            return failure();
      } else if (contents.accesses && !contents.calls) {
        if (failed(outline(&op)))
          return failure();
      }
    }
  return success();
}

LogicalResult Outliner::copyGlobal(memref::GetGlobalOp use) {
  auto global = symbols.lookup<memref::GlobalOp>(use.getName());
  if (!global)
    return use.emitOpError("names no constant of this module");
  MemRefType type = getParameterType(global.getType());
  if (!kernelSymbols->lookup(use.getName())) {
    auto copy = cast<memref::GlobalOp>(global->clone());
    copy.setType(type);
    kernelSymbols->insert(copy, kernels.getBody()->begin());
  }
  return success();
}

FailureOr<gpu::GPUFuncOp>
Outliner::createKernel(Operation *op, ValueRange values,
                       ArrayRef<Operation *> constants) {
  // 1. Parameters.
  Location loc = op->getLoc();
  SmallVector<Type> types;
  SmallVector<bool> isAligned;
  for (Value value : values) {
    Type type = value.getType();
    auto buffer = dyn_cast<MemRefType>(type);
    isAligned.push_back(buffer && beginsAtVector(value));
    if (buffer) {
      type = getParameterType(buffer);
      if (!type)
        return op->emitOpError("has no form as a GPU kernel: it is on a buffer "
                               "whose shape or strides are not constant: ")
               << buffer;
    } else if (!type.isIntOrIndexOrFloat()) {
      return op->emitOpError("has no form as a GPU kernel: it takes a ")
             << type;
    }
    types.push_back(type);
  }
  OpBuilder builder(op->getContext());
  auto kernel = gpu::GPUFuncOp::create(builder, loc, "kernel",
                                       builder.getFunctionType(types, {}));
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                  builder.getUnitAttr());
  if (isPlain)
    kernel->setAttr(cuda::kPlainAttr, builder.getUnitAttr());
  for (auto [number, aligned] : llvm::enumerate(isAligned))
    if (aligned)
      kernel.setArgAttr(number, LLVM::LLVMDialect::getAlignAttrName(),
                        builder.getI64IntegerAttr(kVectorBytes));

  // 2. The body: constants, the op.
  builder.setInsertionPointToStart(&kernel.front());
  IRMapping mapping;
  mapping.map(values, kernel.getArguments());
  for (Operation *constant : constants) {
    auto global = dyn_cast<memref::GetGlobalOp>(constant);
    if (!global) {
      builder.clone(*constant, mapping);
      continue;
    }
    if (failed(copyGlobal(global)))
      return kernel.erase(), failure();
    auto copy = memref::GetGlobalOp::create(builder, global.getLoc(),
                                            getParameterType(global.getType()),
                                            global.getName());
    mapping.map(global.getResult(), copy.getResult());
  }
  Operation *body = builder.clone(*op, mapping);
  gpu::ReturnOp::create(builder, loc);
  WalkResult result = body->walk<WalkOrder::PreOrder>(
      [](Operation *inner) { return WalkResult(updateViewType(inner)); });
  if (result.wasInterrupted())
    return kernel.erase(), failure();
  return kernel;
}

LogicalResult Outliner::outline(Operation *op) {
  if (doesNothing(op)) {
    op->erase();
    return success();
  }
  if (!op->use_empty())
    return op->emitOpError(
        "gives the host a value from the memory of the GPU, which it cannot "
        "read; run this stage on a CPU");

  // 1. What it takes.
  llvm::SetVector<Value> used(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  SmallVector<Value> values;
  SmallVector<Operation *> constants;
  for (Value value : used) {
    Operation *producer = value.getDefiningOp();
    if (producer && (producer->hasTrait<OpTrait::ConstantLike>() ||
                     isa<memref::GetGlobalOp>(producer)))
      constants.push_back(producer);
    else
      values.push_back(value);
  }
  getModule(pipeline::getTarget(op));
  FailureOr<gpu::GPUFuncOp> kernel = createKernel(op, values, constants);
  if (failed(kernel))
    return failure();

  // 2. One of its kind. Locations are not in the text, and need not agree.
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*kernel)->print(stream, OpPrintingFlags().useLocalScope().assumeVerified());
  auto [entry, isNew] = known.try_emplace(text, *kernel);
  if (isNew) {
    // The assembler takes no dots.
    auto function = op->getParentOfType<func::FuncOp>();
    std::string name = (function.getSymName() + "_" + getKernelClass(op)).str();
    for (char &c : name)
      if (!llvm::isAlnum(c))
        c = '_';
    kernel->setName(name);
    kernelSymbols->insert(*kernel);
  } else {
    kernel->erase();
  }

  // 3. The launch.
  OpBuilder builder(op);
  auto symbol = SymbolRefAttr::get(kernels.getSymNameAttr(),
                                   FlatSymbolRefAttr::get(entry->second));
  int64_t one[] = {1, 1, 1};
  kernel::LaunchOp::create(builder, op->getLoc(), symbol,
                           builder.getDenseI64ArrayAttr(one),
                           builder.getDenseI64ArrayAttr(one), values);
  op->erase();
  return success();
}

struct OutlineGpuKernelsPass
    : penstock::impl::PipelineOutlineGpuKernelsBase<OutlineGpuKernelsPass> {
  using PipelineOutlineGpuKernelsBase::PipelineOutlineGpuKernelsBase;

  void runOnOperation() override {
    Outliner outliner(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (isStageFunction(function, kind) &&
          failed(outliner.outlineWithin(function)))
        return signalPassFailure();
  }
};

} // namespace
