//===- Parallelize.cpp - Large kernels run on all threads -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Only parallel dimensions are split, so every element is computed as it would
// be by one thread: the bits do not depend on the split.
//===----------------------------------------------------------------------===//

#include "passes/Cpu/Passes.h"
#include "passes/Kernels/ReductionOrder.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Linalg/Transforms/TilingInterfaceImpl.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Transforms/RegionUtils.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEPARALLELIZE
#include "passes/Cpu/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// A multiple of every vector width, for tiles of the vector dimension.
constexpr int64_t widestVector = 16;

/// A tile that divides `size` and keeps the threads busy: the largest with at
/// most a tenth of idleness, else the one with the least, if that is bearable.
/// Zero if there is none.
int64_t chooseTile(int64_t size, int64_t threads, int64_t multiple) {
  int64_t best = 0;
  double bestShare = 0.6;
  for (int64_t tile = size / threads; tile >= 1; --tile) {
    if (size % tile || tile % multiple)
      continue;
    int64_t count = size / tile, rounds = (count + threads - 1) / threads;
    double share = static_cast<double>(count) / (rounds * threads);
    if (share >= 0.9)
      return tile;
    if (share > bestShare) {
      best = tile;
      bestShare = share;
    }
  }
  return best;
}

/// Tiles `op` along its first parallel dimension that splits well.
void tile(RewriterBase &rewriter, linalg::GenericOp op, int64_t threads) {
  std::optional<unsigned> vector = chooseVectorDimension(op);
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (unsigned dim = 0; dim < sizes.size(); ++dim) {
    if (iterators[dim] != utils::IteratorType::parallel)
      continue;
    int64_t size =
        chooseTile(sizes[dim], threads, vector == dim ? widestVector : 1);
    if (!size)
      continue;
    SmallVector<OpFoldResult> tiles(sizes.size(), rewriter.getIndexAttr(0));
    tiles[dim] = rewriter.getIndexAttr(size);
    scf::SCFTilingOptions options;
    options.setTileSizes(tiles);
    options.setLoopType(scf::SCFTilingOptions::LoopType::ForallOp);
    rewriter.setInsertionPoint(op);
    auto result = scf::tileUsingSCF(
        rewriter, cast<TilingInterface>(op.getOperation()), options);
    if (succeeded(result))
      rewriter.eraseOp(op);
    return;
  }
}

/// Allocas of a loop body would grow the stack with every iteration.
void hoistAllocas(Operation *from, Block &entry) {
  from->walk([&](memref::AllocaOp alloca) {
    alloca->moveBefore(&entry, entry.begin());
  });
}

/// An address as a buffer with the static layout `type`.
Value bufferFromPointer(OpBuilder &builder, Location loc,
                        const LLVMTypeConverter &converter, MemRefType type,
                        Value pointer) {
  Value descriptor =
      MemRefDescriptor::fromStaticShape(builder, loc, converter, type, pointer);
  return UnrealizedConversionCastOp::create(builder, loc, type, descriptor)
      .getResult(0);
}

/// Moves the iterations of a forall to functions, and calls them.
class Outliner {
public:
  explicit Outliner(ModuleOp module)
      : module(module), converter(module.getContext()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())) {}

  /// Divides a loop over so many threads. Fails, and changes nothing, where a
  /// value from outside has no address or form that a closure could hold.
  LogicalResult outline(scf::ForallOp forall, int64_t threads);

private:
  /// Values that the body takes from outside: constants go with it, the others
  /// through the closure.
  LogicalResult capture(scf::ForallOp forall);
  Type fieldType(Type type) {
    if (isa<MemRefType>(type))
      return pointer;
    return type.isIndex() ? IntegerType::get(type.getContext(), 64) : type;
  }
  Value toField(OpBuilder &builder, Location loc, Value value);
  Value fromField(OpBuilder &builder, Location loc, Value field, Type type);
  func::FuncOp createPart(scf::ForallOp forall, LLVM::LLVMStructType closure,
                          int64_t threads);
  LLVM::LLVMFuncOp runtimeFunction(Location loc);

  ModuleOp module;
  LLVMTypeConverter converter;
  Type pointer;
  SmallVector<Value> captured;
  SmallVector<Operation *> constants;
};

LogicalResult Outliner::capture(scf::ForallOp forall) {
  captured.clear();
  constants.clear();
  llvm::SetVector<Value> above;
  getUsedValuesDefinedAbove(forall.getRegion(), above);
  for (Value value : above) {
    Type type = value.getType();
    Operation *producer = value.getDefiningOp();
    if (producer && producer->hasTrait<OpTrait::ConstantLike>()) {
      constants.push_back(producer);
      continue;
    }
    if (auto buffer = dyn_cast<MemRefType>(type)) {
      SmallVector<int64_t> strides;
      int64_t offset;
      if (!buffer.hasStaticShape() ||
          failed(buffer.getStridesAndOffset(strides, offset)) ||
          ShapedType::isDynamic(offset) || ShapedType::isDynamicShape(strides))
        return failure();
    } else if (!type.isIntOrIndexOrFloat()) {
      return failure();
    }
    captured.push_back(value);
  }
  return success();
}

Value Outliner::toField(OpBuilder &builder, Location loc, Value value) {
  Type i64 = builder.getI64Type();
  if (isa<MemRefType>(value.getType())) {
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, value);
    address = arith::IndexCastOp::create(builder, loc, i64, address);
    return LLVM::IntToPtrOp::create(builder, loc, pointer, address);
  }
  if (value.getType().isIndex())
    return arith::IndexCastOp::create(builder, loc, i64, value);
  return value;
}

Value Outliner::fromField(OpBuilder &builder, Location loc, Value field,
                          Type type) {
  if (auto buffer = dyn_cast<MemRefType>(type))
    return bufferFromPointer(builder, loc, converter, buffer, field);
  if (type.isIndex())
    return arith::IndexCastOp::create(builder, loc, type, field);
  return field;
}

func::FuncOp Outliner::createPart(scf::ForallOp forall,
                                  LLVM::LLVMStructType closure,
                                  int64_t threads) {
  auto function = forall->getParentOfType<func::FuncOp>();
  Location loc = forall.getLoc();
  OpBuilder builder(module.getContext());
  Type i64 = builder.getI64Type();
  auto part = func::FuncOp::create(loc, (function.getName() + ".part").str(),
                                   builder.getFunctionType({pointer, i64}, {}));
  part.setPrivate();
  if (Attribute target = function->getAttr(pipeline::kTargetAttr))
    part->setAttr(pipeline::kTargetAttr, target);
  SymbolTable(module).insert(part, std::next(function->getIterator()));
  Block *entry = part.addEntryBlock();
  builder.setInsertionPointToStart(entry);

  // 1. The closure's fields.
  IRMapping mapping;
  for (Operation *constant : constants)
    builder.clone(*constant, mapping);
  for (auto [index, value] : llvm::enumerate(captured)) {
    Value address = LLVM::GEPOp::create(
        builder, loc, pointer, closure, part.getArgument(0),
        ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(index)});
    Value field =
        LLVM::LoadOp::create(builder, loc, fieldType(value.getType()), address);
    mapping.map(value, fromField(builder, loc, field, value.getType()));
  }

  // 2. This part's share of the iterations, counted through all dimensions.
  SmallVector<int64_t> counts;
  int64_t total = 1;
  for (auto [low, high, step] :
       llvm::zip_equal(forall.getStaticLowerBound(),
                       forall.getStaticUpperBound(), forall.getStaticStep())) {
    counts.push_back((high - low + step - 1) / step);
    total *= counts.back();
  }
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value chunk = arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                           part.getArgument(1));
  auto bound = [&](Value number) -> Value {
    Value product =
        arith::MulIOp::create(builder, loc, number, constant(total));
    return arith::DivUIOp::create(builder, loc, product, constant(threads));
  };
  Value next = arith::AddIOp::create(builder, loc, chunk, constant(1));
  auto loop =
      scf::ForOp::create(builder, loc, bound(chunk), bound(next), constant(1));
  func::ReturnOp::create(builder, loc);

  // 3. The body.
  builder.setInsertionPointToStart(loop.getBody());
  Value rest = loop.getInductionVar();
  for (unsigned dim = counts.size(); dim-- > 0;) {
    Value number = rest;
    if (dim > 0) {
      number =
          arith::RemUIOp::create(builder, loc, rest, constant(counts[dim]));
      rest = arith::DivUIOp::create(builder, loc, rest, constant(counts[dim]));
    }
    number = arith::MulIOp::create(builder, loc, number,
                                   constant(forall.getStaticStep()[dim]));
    number = arith::AddIOp::create(builder, loc, number,
                                   constant(forall.getStaticLowerBound()[dim]));
    mapping.map(forall.getInductionVar(dim), number);
  }
  for (Operation &op : forall.getBody()->without_terminator())
    builder.clone(op, mapping);
  hoistAllocas(loop, *entry);
  return part;
}

LLVM::LLVMFuncOp Outliner::runtimeFunction(Location loc) {
  StringRef name = "penstock_parallel";
  if (auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return function;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  return LLVM::LLVMFuncOp::create(
      builder, loc, name,
      LLVM::LLVMFunctionType::get(
          LLVM::LLVMVoidType::get(module.getContext()),
          {pointer, pointer, pointer, builder.getI64Type()}));
}

LogicalResult Outliner::outline(scf::ForallOp forall, int64_t threads) {
  auto isDynamic = [](ArrayRef<int64_t> values) {
    return ShapedType::isDynamicShape(values);
  };
  if (!forall.getOutputs().empty() || isDynamic(forall.getStaticLowerBound()) ||
      isDynamic(forall.getStaticUpperBound()) ||
      isDynamic(forall.getStaticStep()) || failed(capture(forall)))
    return failure();
  SmallVector<Type> fields;
  for (Value value : captured)
    fields.push_back(fieldType(value.getType()));
  auto closure = LLVM::LLVMStructType::getLiteral(module.getContext(), fields);
  func::FuncOp part = createPart(forall, closure, threads);

  auto function = forall->getParentOfType<func::FuncOp>();
  Location loc = forall.getLoc();
  OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
  Value one = LLVM::ConstantOp::create(builder, loc, builder.getI64Type(),
                                       builder.getI64IntegerAttr(1));
  Value space = LLVM::AllocaOp::create(builder, loc, pointer, closure, one);
  builder.setInsertionPoint(forall);
  for (auto [index, value] : llvm::enumerate(captured)) {
    Value address = LLVM::GEPOp::create(
        builder, loc, pointer, closure, space,
        ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(index)});
    LLVM::StoreOp::create(builder, loc, toField(builder, loc, value), address);
  }
  Value body =
      func::ConstantOp::create(builder, loc, part.getFunctionType(),
                               FlatSymbolRefAttr::get(part.getNameAttr()));
  body = UnrealizedConversionCastOp::create(builder, loc, pointer, body)
             .getResult(0);
  Value count = LLVM::ConstantOp::create(builder, loc, builder.getI64Type(),
                                         builder.getI64IntegerAttr(threads));
  LLVM::CallOp::create(builder, loc, runtimeFunction(loc),
                       ValueRange{function.getArgument(0), body, space, count});
  forall.erase();
  return success();
}

struct ParallelizePass
    : penstock::impl::PipelineParallelizeBase<ParallelizePass> {
  using PipelineParallelizeBase::PipelineParallelizeBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    PipelineParallelizeBase::getDependentDialects(registry);
    linalg::registerTilingInterfaceExternalModels(registry);
  }

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    Outliner outliner(getOperation());
    for (func::FuncOp function : functions) {
      cpu::TargetAttr target = getCpuTarget(function);
      if (function.isDeclaration() || !target)
        continue;
      int64_t threads = target.getThreads();
      // 1. Split what is large.
      if (threads > 1) {
        SmallVector<linalg::GenericOp> ops;
        for (auto op : function.getBody().front().getOps<linalg::LinalgOp>()) {
          int64_t work = 1;
          for (int64_t size : op.getStaticLoopRanges())
            work *= size;
          if (work < threshold)
            continue;
          auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
          if (generic)
            ops.push_back(generic);
        }
        for (linalg::GenericOp op : ops)
          tile(rewriter, op, threads);
      }
      // 2. To functions, or ordinary loops.
      SmallVector<scf::ForallOp> loops;
      function.walk([&](scf::ForallOp forall) { loops.push_back(forall); });
      for (scf::ForallOp forall : loops) {
        if (threads > 1 && succeeded(outliner.outline(forall, threads)))
          continue;
        hoistAllocas(forall, function.getBody().front());
        rewriter.setInsertionPoint(forall);
        if (failed(scf::forallToForLoop(rewriter, forall))) {
          forall.emitOpError("internal error: has no form as loops");
          return signalPassFailure();
        }
      }
    }
  }
};

} // namespace
